import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import { Suspense } from "react";
import { expect, test } from "vitest";
import { STATES_TEXT } from "../i18n/ui.ts";
import { lazyPart } from "./lazyPart.tsx";

function draw(part: ReturnType<typeof lazyPart<{ name: string }>>) {
  const Part = part;
  render(
    <MantineProvider>
      <p>the rest</p>
      <Suspense>
        <Part name="a" />
      </Suspense>
    </MantineProvider>,
  );
}

test("a part is drawn with its properties once its file is there", async () => {
  draw(
    lazyPart(async () => ({ name }) => <p>part {name}</p>),
  );
  expect(await screen.findByText("part a")).toBeTruthy();
});

test("a part that cannot be loaded leaves the rest of the page, and a button to try again", async () => {
  draw(lazyPart(() => Promise.reject(new Error("no answer"))));
  expect(await screen.findByText(STATES_TEXT.missingPart)).toBeTruthy();
  expect(screen.getByText("no answer")).toBeTruthy();
  expect(screen.getByText("the rest")).toBeTruthy();
  expect(screen.getByRole("button", { name: STATES_TEXT.retry })).toBeTruthy();
});
