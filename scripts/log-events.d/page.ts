import { eventsBySubject } from '../../src/core/log/events.ts';
import type { EventEntry, EventMembers } from '../../src/core/log/table.ts';

const INTRODUCTION = `# Log events

All events that the hub logs, by subject. \`scripts/log-events\` generates this page from the table in \`src/core/log/\`.

- **A line** is one JSON object, on standard error or in the journal (\`journalctl -u latchkey -o cat\`). It has \`time\` (RFC 3339, UTC),
  \`level\` (\`debug\`, \`info\`, \`warn\` or \`error\`), \`event\`, and the members of the event.
- **Events and members are stable**: alert on \`event\` and on members, not on the words in \`message\`, \`error\` or \`detail\`. The
  changelog lists renamed and removed events and members. New ones may be added; ignore those that you do not know.
- **Levels**: \`error\` means that a person must act, \`warn\` that one may have to, \`info\` is for the record, and \`debug\` appears only with
  \`--log-level debug\`. An event with several levels is logged at \`debug\` if it only repeats an earlier one, and at a higher level if it is
  new. The level may differ from the severity of the [condition](health.md) on the same subject: \`store_recovered\` is an \`error\` in the log and a
  \`warning\` in \`status\`.
- **Times and durations** are in seconds, except where RFC 3339 is named. Optional members may be missing or null. No member ever contains a secret.
- **Rate limit**: for each event and appliance, up to 20 lines at once, then two a minute; for each event in total, up to 500 at once, then one a
  second. Further lines are suppressed; the next line has their number in \`suppressed\`. \`debug\` is not limited. Texts longer than 8,192 characters
  are cut.
- A problem that occurs at every attempt is logged when it begins, occasionally while it lasts, and when it ends
  ([reliability.md](reliability.md#what-is-logged)).
`;

/** The text of docs/log-events.md. */
export function logEventsPage(): string {
  const sections = Object.entries(eventsBySubject).map(
    ([subject, events]) => `## ${subject}\n\n${Object.entries(events).map(described).join('\n')}`,
  );
  return [INTRODUCTION, ...sections].join('\n');
}

function described([name, { levels, meaning, members }]: [string, EventEntry]): string {
  const own = membersOf(members);
  return `### \`${name}\`\n\n${levels.join(', ')} · ${meaning}\n${own === '' ? '' : `\n${own}\n`}`;
}

function membersOf(members: EventMembers): string {
  return Object.entries(members)
    .map(([name, { type, meaning, optional }]) => `- \`${name}\` (${type}${optional ? ', optional' : ''}): ${meaning}`)
    .join('\n');
}
