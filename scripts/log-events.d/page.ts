import { eventsBySubject } from '../../src/core/log/events.ts';
import type { EventEntry, Members } from '../../src/core/log/table.ts';

const INTRODUCTION = `# Log events

What the hub logs, by subject. This page is made from the table in \`src/core/log/\`; \`scripts/log-events\` writes it.

- **A line** is one JSON object, on standard error or in the journal (\`journalctl -u latchkey -o cat\`). It has \`time\` (RFC 3339, UTC),
  \`level\` (\`debug\`, \`info\`, \`warn\` or \`error\`), \`event\`, and the members of the event.
- **Events and members are stable**: alert on \`event\` and on members, not on the words in \`message\`, \`error\` or \`detail\`. An event or a
  member that is renamed or removed is named in the changelog. New events and new members may come; ignore those you do not know.
- **Levels**: \`error\` needs a person, \`warn\` may need one, \`info\` is for the record, and \`debug\` appears only with
  \`--log-level debug\`. An event of several levels has \`debug\` for repetitions, and the higher level when it is news.
- **Times** that are not RFC 3339 are seconds. Optional members may be missing or null. No member ever contains a secret.
- **Rate limit**: of one event about one appliance, 20 lines are logged at once, then two a minute; of one event in all, 500 at once, then one a second. More are
  suppressed, and the next line says how many in \`suppressed\`. \`debug\` is not limited. Texts longer than 8,192 characters are cut.
- A problem that occurs at every attempt is logged when it begins, seldom while it lasts, and when it is over
  ([reliability.md](reliability.md#what-the-log-tells)).
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

function membersOf(members: Members): string {
  return Object.entries(members)
    .map(([name, { type, meaning, optional }]) => `- \`${name}\` (${type}${optional ? ', optional' : ''}): ${meaning}`)
    .join('\n');
}
