import { Button, CopyButton } from "@mantine/core";
import { useYaml } from "../api/details.ts";
import { YAML } from "../i18n/queue.ts";
import { Panel } from "./Panel.tsx";
import { QueryResult } from "./QueryResult.tsx";
import { ScrollRegion } from "./ScrollRegion.tsx";
import styles from "./YamlView.module.css";

type Props = { path: string; file: string; title?: string };

/** An object as the cluster has it, to read, copy or download. */
export function YamlView({ path, file, title }: Props) {
  const query = useYaml(path);
  return (
    <QueryResult query={query} rows={12}>
      {(text) => (
        <Panel
          title={title ?? YAML.title}
          note={title === undefined ? YAML.note : undefined}
          tools={<YamlTools text={text} file={file} />}
          flush
        >
          <YamlText text={text} />
        </Panel>
      )}
    </QueryResult>
  );
}

/** Buttons that copy a text and save it as a file. */
function YamlTools({ text, file }: { text: string; file: string }) {
  return (
    <>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Button size="compact-sm" variant="default" onClick={copy}>
            {copied ? YAML.copied : YAML.copy}
          </Button>
        )}
      </CopyButton>
      <Button
        size="compact-sm"
        variant="default"
        component="a"
        href={`data:application/yaml;charset=utf-8,${encodeURIComponent(text)}`}
        download={file}
      >
        {YAML.download}
      </Button>
    </>
  );
}

function YamlText({ text }: { text: string }) {
  return (
    <ScrollRegion name={YAML.text} className={styles.scroll}>
      <pre className={styles.text}>{text}</pre>
    </ScrollRegion>
  );
}
