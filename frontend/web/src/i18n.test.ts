// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the samples are source code in strings
/**
 * All texts that people read live in src/i18n. This test parses every component and fails on a
 * text that is written in JSX or in a property that ends up on the screen.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "vite";
import { describe, expect, it } from "vitest";

const SOURCE = import.meta.dirname;
/** Props and object properties that hold texts. */
const TEXT_NAMES = new Set([
  "alt",
  "aria-label",
  "aria-description",
  "aria-roledescription",
  "aria-valuetext",
  "children",
  "description",
  "detail",
  "error",
  "label",
  "message",
  "name",
  "note",
  "placeholder",
  "summary",
  "title",
  "word",
]);
const LETTERS = /\p{L}{2}/u;

type Node = { readonly type: string; readonly start: number; readonly [field: string]: unknown };

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

function children(node: Node): Node[] {
  return Object.values(node).flat().filter(isNode);
}

/** Return the literal texts an expression can yield, without looking into calls and elements. */
function literals(node: unknown): Node[] {
  if (!isNode(node)) return [];
  switch (node.type) {
    case "Literal":
      return typeof node.value === "string" && LETTERS.test(node.value) ? [node] : [];
    case "TemplateLiteral":
      return children(node).some(
        ({ type, value }) =>
          type === "TemplateElement" && LETTERS.test((value as { cooked: string }).cooked),
      )
        ? [node]
        : [];
    case "ConditionalExpression":
      return [node.consequent, node.alternate].flatMap(literals);
    case "LogicalExpression":
    case "BinaryExpression":
      return node.operator === "===" || node.operator === "!=="
        ? []
        : [node.left, node.right].flatMap(literals);
    case "JSXExpressionContainer":
      return literals(node.expression);
    default:
      return [];
  }
}

function nameOf(key: unknown): string {
  if (!isNode(key)) return "";
  return String(key.name ?? key.value ?? "");
}

/** Return the nodes of a syntax tree that are literal texts on the screen. */
function textNodes(node: Node): Node[] {
  const own: Node[] = [];
  if (node.type === "JSXText" && LETTERS.test(String(node.value))) own.push(node);
  if (node.type === "JSXElement" || node.type === "JSXFragment") {
    const containers = children(node).filter(({ type }) => type === "JSXExpressionContainer");
    own.push(...containers.flatMap(literals));
  }
  if (node.type === "JSXAttribute" && TEXT_NAMES.has(nameOf(node.name))) {
    own.push(...literals(node.value));
  }
  if (node.type === "Property" && TEXT_NAMES.has(nameOf(node.key))) {
    own.push(...literals(node.value));
  }
  return [...own, ...children(node).flatMap(textNodes)];
}

/** Return the texts of one file as `line: source`. */
function findTexts(source: string): string[] {
  const { program, errors } = parseSync("component.tsx", source);
  if (errors.length > 0) throw new Error(errors[0]?.message);
  if (!isNode(program)) throw new Error("the parser returned no program");
  return textNodes(program).map(({ start, end }) => {
    const line = source.slice(0, start).split("\n").length;
    return `${line}: ${source.slice(start, Number(end)).trim()}`;
  });
}

describe("texts", () => {
  it("live in src/i18n, not in components", () => {
    const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter(
      (file) => file.endsWith(".tsx") && !file.endsWith(".test.tsx"),
    );
    // The components were found at all: there are far more than this.
    expect(files.length).toBeGreaterThan(35);
    const offences = files.flatMap((file) =>
      findTexts(readFileSync(join(SOURCE, file), "utf8")).map((text) => `${file}:${text}`),
    );
    expect(offences).toEqual([]);
  });

  it.each([
    ["<p>Two words</p>", "1: Two words"],
    ['<p>{open ? "Close" : null}</p>', '1: "Close"'],
    ["<p>{`${count} queues`}</p>", "1: `${count} queues`"],
    ['<p>{name ?? "unknown"}</p>', '1: "unknown"'],
    ['<Panel title="Pods" />', '1: "Pods"'],
    ["<a aria-label={`Edit ${name}`}>{name}</a>", "1: `Edit ${name}`"],
    ['useThing({ label: "Quota" })', '1: "Quota"'],
  ])("are detected in %s", (source, offence) => {
    expect(findTexts(source)).toEqual([offence]);
  });

  it.each([
    '<p className="quiet">{PAGE.title}</p>',
    "<p>{`${used}/${total}`} · –</p>",
    '<Panel title={PAGE.title} kind="wide" />',
    '<p>{state === "running" && PAGE.title}</p>',
    "<a href={`/queues?queue=${name}`}>{label(name)}</a>",
  ])("are not confused with %s", (source) => {
    expect(findTexts(source)).toEqual([]);
  });
});
