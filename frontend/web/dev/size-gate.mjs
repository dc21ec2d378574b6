// The first load, which is what the entry needs before any page can show, may have at most 320 kB
// gzip with its style sheets. Each page is a chunk of its own with at most 60 kB.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const ENTRY_LIMIT = 320_000;
const PAGE_LIMIT = 60_000;
const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL("manifest.json", dist), "utf8"));
const sizes = new Map();

function size(file) {
  if (!sizes.has(file))
    sizes.set(file, gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length);
  return sizes.get(file);
}

/** Return all files that a manifest entry needs to start. */
function closure(key, seen = new Set(), files = new Set()) {
  if (seen.has(key)) return files;
  seen.add(key);
  const chunk = manifest[key];
  files.add(chunk.file);
  for (const sheet of chunk.css ?? []) files.add(sheet);
  for (const next of chunk.imports ?? []) closure(next, seen, files);
  return files;
}

const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
const total = (files) => [...files].reduce((sum, file) => sum + size(file), 0);
const entry = closure("index.html");
let failed = total(entry) > ENTRY_LIMIT;
console.log(`first load ${kilobytes(total(entry))} gzip of ${kilobytes(ENTRY_LIMIT)}`);
for (const [key, chunk] of Object.entries(manifest)) {
  if (!chunk.isDynamicEntry) continue;
  const extra = total([...closure(key)].filter((file) => !entry.has(file)));
  console.log(`  ${key} ${kilobytes(extra)}`);
  failed ||= extra > PAGE_LIMIT;
}
if (failed) {
  console.error("Too large: see the limits at the top of dev/size-gate.mjs");
  process.exit(1);
}
