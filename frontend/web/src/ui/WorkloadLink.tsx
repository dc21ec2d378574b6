import { Link } from "react-router";

/** A link to a workload by its key, `namespace/name`. */
export function WorkloadLink({ workload }: { workload: string }) {
  const [namespace = "", name = ""] = workload.split("/");
  return (
    <Link to={`/workloads/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`}>
      {workload}
    </Link>
  );
}
