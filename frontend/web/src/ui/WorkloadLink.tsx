import { Link } from "react-router";
import { workloadName } from "../model/names.ts";
import { workloadPath } from "./paths.ts";

/** A link to a workload by its key, `namespace/name`; it shows a name for people. */
export function WorkloadLink({ workload, name }: { workload: string; name?: string }) {
  const [namespace = "", object = ""] = workload.split("/");
  return (
    <Link to={workloadPath({ namespace, name: object })} title={workload}>
      {name ?? workloadName(workload)}
    </Link>
  );
}
