// Builds ../static, the same bytes from the same sources: npm ci && npm run build.
import { build } from "esbuild";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";

const to = "../static";
mkdirSync(to, { recursive: true });
const built = await build({
  entryPoints: ["source/viewer.tsx"],
  outdir: to,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  metafile: true,
});
await build({ entryPoints: ["source/viewer.css"], outdir: to, minify: true, target: "es2022" });
for (const name of ["index.html", "icon.svg"]) copyFileSync(`source/${name}`, `${to}/${name}`);

// The licences of what is in the bundle.
const packages = new Set();
for (const input of Object.keys(built.metafile.inputs)) {
  const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
  if (found) packages.add(found[1]);
}
const texts = [...packages].sort().map((name) => {
  const folder = `node_modules/${name}`;
  const about = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (!file || !existsSync(`${folder}/${file}`)) throw new Error(`${name} has no licence`);
  return `${name} ${about.version} (${about.license})\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
});
writeFileSync(`${to}/LICENSES.txt`, `viewer.js contains:\n\n${texts.join(`\n${"-".repeat(72)}\n\n`)}`);
