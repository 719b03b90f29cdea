"""HTTP servers of this process: arrays, trees and keys in formats that others read."""
