import { useWorkloadUtilisation } from "../../api/details.ts";
import { LineChart } from "../../charts/LineChart.tsx";
import { UTILISATION } from "../../i18n/workloads.ts";
import type { Workload } from "../../model/rows.ts";
import { Panel } from "../../ui/Panel.tsx";
import { QueryResult } from "../../ui/QueryResult.tsx";
import { Empty } from "../../ui/States.tsx";

/** How busy the GPUs of a workload were, in steps of five minutes; steps that were not read are gaps. */
export function Utilisation({ workload }: { workload: Workload }) {
  const query = useWorkloadUtilisation(workload.namespace, workload.name);
  return (
    <Panel title={UTILISATION.title} note={UTILISATION.note}>
      <QueryResult query={query}>
        {({ times, stepSeconds, utilisation }) =>
          utilisation.every((percent) => percent === null) ? (
            <Empty title={UTILISATION.unknownTitle}>{UTILISATION.unknown}</Empty>
          ) : (
            <LineChart
              summary={UTILISATION.summary}
              file={`${workload.name}-utilisation.csv`}
              times={times}
              stepSeconds={stepSeconds}
              series={[
                { name: UTILISATION.series, values: utilisation, color: "var(--bar-inside)" },
              ]}
            />
          )
        }
      </QueryResult>
    </Panel>
  );
}
