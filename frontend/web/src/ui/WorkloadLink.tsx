import { Link } from "react-router";
import { workloadName } from "../model/names.ts";
import { workloadPath } from "./paths.ts";

/** A link to a workload by its key, `namespace/name`; it shows `name`, or else a readable form of the key. */
export function WorkloadLink({ workload, name }: { workload: string; name?: string }) {
  const [namespace = "", objectName = ""] = workload.split("/");
  return (
    <Link to={workloadPath({ namespace, name: objectName })} title={workload}>
      {name ?? workloadName(workload)}
    </Link>
  );
}
