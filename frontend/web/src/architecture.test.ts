import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";

/** Layers from the top. An import points to a lower layer or stays inside its own folder. */
const LAYERS: readonly (readonly string[])[] = [
  ["main.tsx", "app"],
  ["features"],
  ["editing"],
  ["charts"],
  ["ui"],
  ["live", "api"],
  ["i18n"],
  ["model"],
];
const SOURCE = import.meta.dirname;

type Arrow = { readonly from: string; readonly to: string };

function arrows(): Arrow[] {
  const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter(
    (file) => /\.tsx?$/.test(file) && !/\.test\.tsx?$/.test(file) && !file.startsWith("testing"),
  );
  return files.flatMap((from) => {
    const text = readFileSync(join(SOURCE, from), "utf8");
    const imports = text.matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g);
    return [...imports].map(([, target = ""]) => ({
      from,
      to: relative(SOURCE, join(SOURCE, dirname(from), target)),
    }));
  });
}

const folder = (file: string) => file.split("/")[0] ?? "";
const layer = (file: string) => LAYERS.findIndex((names) => names.includes(folder(file)));
const arrowText = ({ from, to }: Arrow) => `${from} -> ${to}`;

describe("imports", () => {
  const all = arrows();

  it("are read from the files", () => {
    expect(all.length).toBeGreaterThan(100);
    expect(all.filter(({ from, to }) => layer(from) < 0 || layer(to) < 0).map(arrowText)).toEqual(
      [],
    );
  });

  it("point down", () => {
    const upward = all.filter(
      ({ from, to }) =>
        layer(to) < layer(from) || (layer(to) === layer(from) && folder(to) !== folder(from)),
    );
    expect(upward.filter(({ from }) => folder(from) !== "main.tsx").map(arrowText)).toEqual([]);
  });

  it("never lead from one feature into another", () => {
    const feature = (file: string) => file.split("/").slice(0, 2).join("/");
    const across = all.filter(
      ({ from, to }) =>
        folder(from) === "features" && folder(to) === "features" && feature(from) !== feature(to),
    );
    expect(across.map(arrowText)).toEqual([]);
  });

  it("leave the socket to src/live and the backend to src/api", () => {
    const texts = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
      .filter((file) => /\.tsx?$/.test(file) && !file.includes(".test."))
      .map((file) => ({ file, text: readFileSync(join(SOURCE, file), "utf8") }));
    const using = (pattern: RegExp) =>
      [...new Set(texts.filter(({ text }) => pattern.test(text)).map(({ file }) => file))].sort();
    expect(using(/new WebSocket\(/)).toEqual(["live/browser.ts"]);
    expect(using(/\bfetch\(/)).toEqual(["api/client.ts"]);
  });
});

describe("components of Mantine", () => {
  it("have their styles, which are imported one by one", () => {
    const styles = join(SOURCE, "../node_modules/@mantine/core/styles");
    const used = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".tsx"))
      .flatMap((file) => {
        const imports = readFileSync(join(SOURCE, file), "utf8").matchAll(
          /import \{([^}]+)\} from "@mantine\/core"/g,
        );
        return [...imports].flatMap(([, names = ""]) => names.match(/\b[A-Z]\w+/g) ?? []);
      });
    const withStyles = [...new Set(used)].filter((name) => existsSync(join(styles, `${name}.css`)));
    const imported = readFileSync(join(SOURCE, "app/mantine.ts"), "utf8");
    expect(withStyles).toContain("Button");
    expect(withStyles.filter((name) => !imported.includes(`/${name}.css`))).toEqual([]);
  });
});
