import { fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { PRICES } from "../../i18n/prices.ts";
import type { Price, PriceList } from "../../model/rows.ts";
import { InPage } from "../../testing/InPage.tsx";
import { PricesPanel } from "./PricesPanel.tsx";

const H100: Price = {
  id: 1,
  model: "NVIDIA-H100",
  price: 2.5,
  validFrom: "2026-01-01",
  state: "valid",
  etag: '"1-1"',
};
let list: PriceList;
let sent: { method: string; path: string; body: unknown; tag: string | undefined }[];

beforeEach(() => {
  list = {
    items: [H100],
    defaults: [
      { model: "NVIDIA-H100", price: 2 },
      { model: "*", price: 1 },
    ],
    currency: "EUR",
    models: ["NVIDIA-H100", "NVIDIA-A100"],
    etag: '"True-0"',
  };
  sent = [];
  vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
    if (init.method === "GET") return Response.json(list);
    const tag = (init.headers as Record<string, string>)["If-Match"];
    const body = init.body === undefined ? null : JSON.parse(String(init.body));
    sent.push({ method: String(init.method), path, body, tag });
    if (init.method === "DELETE") return new Response(null, { status: 204 });
    return Response.json({ ...H100, ...list, ...body });
  });
});

async function draw(isAdmin = true) {
  render(
    <InPage>
      <PricesPanel isAdmin={isAdmin} />
    </InPage>,
  );
  await screen.findByText("2.50 EUR");
}

function press(name: string) {
  fireEvent.click(screen.getByRole("button", { name }));
}

it("shows stored prices and those of the setting that hold", async () => {
  await draw(false);
  const rows = screen.getAllByRole("row").map((row) => row.textContent);
  expect(rows.slice(1)).toEqual([
    "H1002.50 EUR2026-01-01valid",
    "H1002.00 EURalwaysdefault, replaced",
    `all other models1.00 EURalways${PRICES.bySetting}`,
  ]);
  expect(screen.getByText(new RegExp(PRICES.locked))).toBeTruthy();
  expect(screen.queryByRole("button")).toBeNull();
});

it("an admin sets a price; one of a past day is announced as such", async () => {
  await draw();
  press(PRICES.create);
  const form = await screen.findByRole("form", { name: PRICES.create });
  const field = (name: string | RegExp) => within(form).getByLabelText(name);
  const submit = within(form).getByRole<HTMLButtonElement>("button", { name: PRICES.submit });
  const model = within(form).getByRole("combobox", { name: /GPU model/ });
  fireEvent.change(model, { target: { value: "NVIDIA-A100" } });
  fireEvent.change(field(/Price of a GPU-hour/), { target: { value: "dear" } });
  expect(within(form).getByText(PRICES.priceWrong)).toBeTruthy();
  expect(submit.disabled).toBe(true);
  fireEvent.change(field(/Price of a GPU-hour/), { target: { value: "1.25" } });
  expect(within(form).queryByText(PRICES.past)).toBeNull();
  fireEvent.change(field(/Valid from/), { target: { value: "2026-02-01" } });
  expect(within(form).getByText(PRICES.past)).toBeTruthy();
  fireEvent.click(submit);
  await screen.findByText(PRICES.created);
  const body = { model: "NVIDIA-A100", price: 1.25, validFrom: "2026-02-01" };
  expect(sent).toEqual([{ method: "POST", path: "/api/v1/prices", body, tag: undefined }]);
});

it("an edit and a deletion send the version that was read", async () => {
  await draw();
  press(PRICES.editOf("H100", "2026-01-01"));
  const form = await screen.findByRole("form");
  fireEvent.change(within(form).getByLabelText(/Price of a GPU-hour/), { target: { value: "3" } });
  fireEvent.click(within(form).getByRole("button", { name: PRICES.save }));
  await screen.findByText(PRICES.edited);
  await waitFor(() => expect(screen.queryByRole("form")).toBeNull());
  press(PRICES.deleteOf("H100", "2026-01-01"));
  const dialog = await screen.findByRole("dialog");
  fireEvent.click(within(dialog).getByRole("button", { name: PRICES.delete }));
  await screen.findByText(PRICES.deleted);
  expect(sent.map(({ method, path, tag }) => [method, path, tag])).toEqual([
    ["PATCH", "/api/v1/prices/1", '"1-1"'],
    ["DELETE", "/api/v1/prices/1", '"1-1"'],
  ]);
});

it("an admin sets the currency", async () => {
  await draw();
  press(PRICES.currencyOf("EUR"));
  const form = await screen.findByRole("form", { name: PRICES.currency });
  fireEvent.change(within(form).getByLabelText(/Currency/), { target: { value: "USD" } });
  fireEvent.click(within(form).getByRole("button", { name: PRICES.currencySubmit }));
  await screen.findByText(PRICES.currencySet);
  expect(sent[0]).toMatchObject({ path: "/api/v1/prices", tag: '"True-0"' });
});
