import { Button } from "@mantine/core";
import { Link, useParams } from "react-router";
import { QUEUE_PAGE } from "../../i18n/queue.ts";
import { FORM } from "../../i18n/queues.ts";
import { useTopic } from "../../live/react.tsx";
import { Page } from "../../ui/Page.tsx";
import { queuePath } from "../../ui/paths.ts";
import { RichText } from "../../ui/RichText.tsx";
import { Badge } from "../../ui/StateBadge.tsx";
import { Empty, Failure, Loading } from "../../ui/States.tsx";
import { type TabLink, TabNav } from "../../ui/TabNav.tsx";
import { YamlView } from "../../ui/YamlView.tsx";
import { AccessTab } from "./AccessTab.tsx";
import { HistoryTab } from "./HistoryTab.tsx";
import { ShareTab } from "./ShareTab.tsx";
import { SummaryTab } from "./SummaryTab.tsx";
import { WorkloadsTab } from "./WorkloadsTab.tsx";

const KEYS = ["summary", "share", "workloads", "history", "access", "yaml"] as const;

/** One queue: what it holds, how its share came about, its work, its past, who may edit it. */
export function QueuePage() {
  const { name = "", tab = "summary" } = useParams();
  const { rows: queues, loaded, problem } = useTopic("queues");
  const queue = queues.get(name);
  const all = <Link to="/queues">{QUEUE_PAGE.all}</Link>;
  if (problem !== null) return <Failure title={problem.title} detail={problem.detail} />;
  if (queue === undefined) {
    return (
      <Page title={name} note={all}>
        {loaded ? (
          <Empty title={QUEUE_PAGE.missingTitle}>
            <RichText text={QUEUE_PAGE.missing} parts={{ link: all }} />
          </Empty>
        ) : (
          <Loading rows={10} />
        )}
      </Page>
    );
  }
  const path = queuePath(name);
  const tabs: TabLink[] = KEYS.map((key) => ({
    key,
    name: QUEUE_PAGE.tabs[key],
    to: key === "summary" ? path : `${path}/${key}`,
  }));
  return (
    <Page
      title={queue.displayName || name}
      note={
        <>
          {all}{" "}
          {queue.managedBy !== "" && (
            <span title={FORM.managedElsewhere(queue.managedBy)}>
              <Badge tone="warn">{queue.managedBy}</Badge>
            </span>
          )}
        </>
      }
      tools={
        <Button
          size="xs"
          variant="default"
          component={Link}
          to={`/queues?queue=${encodeURIComponent(name)}`}
        >
          {QUEUE_PAGE.edit}
        </Button>
      }
    >
      <TabNav name={QUEUE_PAGE.tabList} tabs={tabs} active={tab} />
      {tab === "share" ? (
        <ShareTab queue={queue} />
      ) : tab === "workloads" ? (
        <WorkloadsTab queue={queue} />
      ) : tab === "history" ? (
        <HistoryTab name={name} />
      ) : tab === "access" ? (
        <AccessTab name={name} />
      ) : tab === "yaml" ? (
        <YamlView path={`${path}/yaml`} file={`${name}.yaml`} />
      ) : (
        <SummaryTab queue={queue} queues={queues} />
      )}
    </Page>
  );
}
