import { createBrowserRouter, type RouteObject } from "react-router";
import { DeniedPage } from "./DeniedPage.tsx";
import { NotFound } from "./NotFound.tsx";
import { OfflinePage } from "./OfflinePage.tsx";
import { PageError } from "./PageError.tsx";
import { Shell } from "./Shell.tsx";

// Every page is a chunk of its own, so that a first visit loads only the shell and that page.
const PAGES: RouteObject[] = [
  {
    index: true,
    lazy: async () => ({
      Component: (await import("../features/overview/OverviewPage.tsx")).OverviewPage,
    }),
  },
  {
    path: "queues",
    lazy: async () => ({
      Component: (await import("../features/queues/QueuesPage.tsx")).QueuesPage,
    }),
  },
  {
    path: "queues/:name/:tab?",
    lazy: async () => ({
      Component: (await import("../features/queue/QueuePage.tsx")).QueuePage,
    }),
  },
  {
    path: "workloads",
    lazy: async () => ({
      Component: (await import("../features/workloads/WorkloadsPage.tsx")).WorkloadsPage,
    }),
  },
  {
    path: "workloads/:namespace/:name/:tab?",
    lazy: async () => ({
      Component: (await import("../features/workloads/WorkloadPage.tsx")).WorkloadPage,
    }),
  },
  {
    path: "nodes",
    lazy: async () => ({
      Component: (await import("../features/nodes/NodesPage.tsx")).NodesPage,
    }),
  },
  {
    path: "nodes/:name/:tab?",
    lazy: async () => ({
      Component: (await import("../features/nodes/NodePage.tsx")).NodePage,
    }),
  },
  {
    path: "topology/:name?",
    lazy: async () => ({
      Component: (await import("../features/topology/TopologyPage.tsx")).TopologyPage,
    }),
  },
  {
    path: "scheduler",
    lazy: async () => ({
      Component: (await import("../features/scheduler/SchedulerPage.tsx")).SchedulerPage,
    }),
  },
  {
    path: "scheduler/sessions/:id",
    lazy: async () => ({
      Component: (await import("../features/scheduler/SessionPage.tsx")).SessionPage,
    }),
  },
  {
    path: "scheduler/evictions",
    lazy: async () => ({
      Component: (await import("../features/scheduler/EvictionsPage.tsx")).EvictionsPage,
    }),
  },
  {
    path: "scheduler/order",
    lazy: async () => ({
      Component: (await import("../features/scheduler/OrderPage.tsx")).OrderPage,
    }),
  },
  {
    path: "scheduler/binds",
    lazy: async () => ({
      Component: (await import("../features/scheduler/BindsPage.tsx")).BindsPage,
    }),
  },
  {
    path: "changes",
    lazy: async () => ({
      Component: (await import("../features/changes/ChangesPage.tsx")).ChangesPage,
    }),
  },
  {
    path: "changes/:id",
    lazy: async () => ({
      Component: (await import("../features/changes/ChangePage.tsx")).ChangePage,
    }),
  },
  {
    path: "usage",
    lazy: async () => ({
      Component: (await import("../features/usage/UsagePage.tsx")).UsagePage,
    }),
  },
  {
    path: "audit",
    lazy: async () => ({
      Component: (await import("../features/audit/AuditPage.tsx")).AuditPage,
    }),
  },
  {
    path: "simulate/:id?",
    lazy: async () => ({
      Component: (await import("../features/simulate/SimulatePage.tsx")).SimulatePage,
    }),
  },
  {
    path: "settings/:tab?/:name?",
    lazy: async () => ({
      Component: (await import("../features/settings/SettingsPage.tsx")).SettingsPage,
    }),
  },
  {
    path: "help",
    lazy: async () => ({
      Component: (await import("../features/help/HelpPage.tsx")).HelpPage,
    }),
  },
  // Part of the first load: they must open when the server does not answer.
  { path: "denied", Component: DeniedPage },
  { path: "offline", Component: OfflinePage },
  { path: "*", Component: NotFound },
];

export const router = createBrowserRouter([
  {
    path: "/",
    Component: Shell,
    HydrateFallback: () => null,
    children: [
      {
        ErrorBoundary: PageError,
        children: PAGES,
      },
    ],
  },
]);
