"""The `json` driver: one value of a JSON document, as an array of rank 0.

`document` reads, keeps and changes what is stored, and finds values in it by their JSON Pointers;
`spec` is what is asked, and the open driver.
"""

from tensorstore_py.drivers.json.spec import JsonDriver, JsonSpec

__all__ = ["JsonDriver", "JsonSpec"]
