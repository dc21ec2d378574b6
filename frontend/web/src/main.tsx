import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { RouterProvider } from "react-router";
import { bootPreferences } from "./api/client.ts";
import { followUser } from "./app/followUser.ts";
import "./app/mantine.ts";
import "./app/global.css";
import "./app/forced.css";
import { Providers } from "./app/Providers.tsx";
import { router } from "./app/routes.tsx";
import { connectLive } from "./live/browser.ts";

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no #root element");

followUser(bootPreferences());
createRoot(root).render(
  <StrictMode>
    <Providers live={connectLive()}>
      <RouterProvider router={router} />
    </Providers>
  </StrictMode>,
);
