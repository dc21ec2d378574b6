import { Link, useParams } from "react-router";
import { WORKLOAD_ACTIONS } from "../../i18n/actions.ts";
import { dateTime } from "../../i18n/numbers.ts";
import { NONE } from "../../i18n/ui.ts";
import { kindIn, WORKLOAD } from "../../i18n/workloads.ts";
import { useSingle } from "../../live/react.tsx";
import { useHues } from "../../live/useHues.ts";
import { useQueueLabels } from "../../live/useQueueLabels.ts";
import type { WorkloadDetail } from "../../model/rows.ts";
import { Elapsed } from "../../ui/Elapsed.tsx";
import { Fact, FactList } from "../../ui/FactList.tsx";
import { Page } from "../../ui/Page.tsx";
import { queuePath, workloadPath } from "../../ui/paths.ts";
import { QueueMark } from "../../ui/QueueMark.tsx";
import { RichText } from "../../ui/RichText.tsx";
import { StateBadge } from "../../ui/StateBadge.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { type TabLink, TabNav } from "../../ui/TabNav.tsx";
import { YamlView } from "../../ui/YamlView.tsx";
import { Placement } from "./Placement.tsx";
import { PodTable } from "./PodTable.tsx";
import { Timeline } from "./Timeline.tsx";
import { Utilisation } from "./Utilisation.tsx";
import { Why } from "./Why.tsx";
import { WorkloadActions } from "./WorkloadActions.tsx";
import styles from "./Workloads.module.css";

export function WorkloadPage() {
  const { namespace = "", name = "", tab = "why" } = useParams();
  const { row, loaded, problem } = useSingle(`workload:${namespace}/${name}`);
  const hues = useHues();
  const label = useQueueLabels();
  const path = workloadPath({ namespace, name });
  const tabs: TabLink[] = [
    { key: "why", name: WORKLOAD.tabs.why, to: path },
    { key: "timeline", name: WORKLOAD.tabs.timeline, to: `${path}/timeline` },
    { key: "pods", name: WORKLOAD.tabs.pods, to: `${path}/pods` },
    { key: "placement", name: WORKLOAD.tabs.placement, to: `${path}/placement` },
    { key: "yaml", name: WORKLOAD.tabs.yaml, to: `${path}/yaml` },
  ];
  if (problem !== null && problem.status !== 404) {
    return <Failure title={problem.title} detail={problem.detail} />;
  }
  if (row === undefined) {
    return (
      <Page title={name}>
        {loaded || problem !== null ? (
          <Empty title={WORKLOAD.missingTitle}>
            <RichText
              text={WORKLOAD.missing}
              parts={{ link: <Link to="/workloads">{WORKLOAD.all}</Link> }}
            />
          </Empty>
        ) : (
          <Loading />
        )}
      </Page>
    );
  }
  return (
    <Page
      title={row.owner || row.name}
      note={<StateBadge state={row.state} />}
      tools={<WorkloadActions workload={row} />}
    >
      <FactList>
        <Fact name={WORKLOAD.kind}>{kindIn(row.kind, row.namespace)}</Fact>
        <Fact name={WORKLOAD.user}>
          {row.user === "" ? (
            WORKLOAD.noUser
          ) : (
            <Link to={`/workloads?q=${encodeURIComponent(row.user)}`}>{row.user}</Link>
          )}
        </Fact>
        <Fact name={WORKLOAD.queue}>
          <Link className={styles.queue} to={queuePath(row.queue)}>
            <QueueMark hue={hues.get(row.queue)} />
            {label(row.queue)}
          </Link>
        </Fact>
        <Fact name={WORKLOAD.priority}>
          {WORKLOAD.priorityText(
            row.priorityClass || String(row.priority ?? NONE),
            row.preemptible,
            row.protectsMinimum,
          )}
        </Fact>
        <Fact name={WORKLOAD.gpus}>{WORKLOAD.gpuText(row.gpu, row.gpuKind)}</Fact>
        {row.gpuUtilisation !== null && (
          <Fact name={WORKLOAD.utilisation}>
            {WORKLOAD.utilisationText(row.gpuUtilisation, row.gpuIdle ?? 0)}
            {row.idleSince !== null && (
              <>
                {" · "}
                <RichText
                  text={WORKLOAD.idle}
                  parts={{ time: <Elapsed since={row.idleSince} /> }}
                />
              </>
            )}
          </Fact>
        )}
        <Fact name={WORKLOAD.members}>
          {row.ready} / {row.minMember} / {row.pods}
        </Fact>
        <Fact name={WORKLOAD.age}>
          <Elapsed since={row.createdAt} />
        </Fact>
        {row.startedAt !== null && (
          <Fact name={WORKLOAD.started}>
            <RichText text={WORKLOAD.ago} parts={{ time: <Elapsed since={row.startedAt} /> }} />
          </Fact>
        )}
        {row.runDeadline !== null && (
          <Fact name={WORKLOAD.runDeadline}>{dateTime(row.runDeadline)}</Fact>
        )}
        <Fact name={WORKLOAD.evictions}>{row.evictions}</Fact>
        <Fact name={WORKLOAD.podGroup}>
          {row.reason === "Unmanaged" ? WORKLOAD.none : row.name}
        </Fact>
      </FactList>
      {row.hold && (
        <p className={styles.held}>{WORKLOAD_ACTIONS.held(row.hold.reason, row.hold.until)}</p>
      )}
      <TabNav name={WORKLOAD.tabList} tabs={tabs} active={tab} />
      <Tab tab={tab} workload={row} path={path} />
    </Page>
  );
}

type TabProps = { tab: string; workload: WorkloadDetail; path: string };

function Tab({ tab, workload, path }: TabProps) {
  switch (tab) {
    case "timeline":
      return <Timeline workload={workload} />;
    case "pods":
      return (
        <>
          <PodTable pods={workload.podList} />
          {workload.gpu > 0 && <Utilisation workload={workload} />}
        </>
      );
    case "placement":
      return <Placement workload={workload} />;
    case "yaml":
      return <YamlView path={`${path}/yaml`} file={`${workload.name}.yaml`} />;
    default:
      return <Why workload={workload} />;
  }
}
