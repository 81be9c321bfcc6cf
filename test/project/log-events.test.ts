import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { EventEntry, EventMembers } from '../../src/core/log/table.ts';
import { eventsBySubject } from '../../src/core/log.ts';
import { logTo } from '../support/log-to.ts';
import { root } from './checkout.ts';

const INTRODUCTION = `# Log events

All events that the hub logs, by subject. The page is made from the table in \`src/core/log/\`.

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

const events = Object.values(eventsBySubject).flatMap((subject) => Object.entries(subject));

test('docs/log-events.md describes every event of the table', async () => {
  const sections = Object.entries(eventsBySubject).map(
    ([subject, listed]) => `## ${subject}\n\n${Object.entries(listed).map(described).join('\n')}`,
  );
  await expect([INTRODUCTION, ...sections].join('\n')).toMatchFileSnapshot(join(root, 'docs/log-events.md'));
});

test('every log event and member is in snake_case, and no event is listed twice', () => {
  const names = events.map(([name]) => name);
  for (const name of [...names, ...events.flatMap(([, { members }]) => Object.keys(members))]) {
    expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
  }
  expect(new Set(names).size).toBe(names.length);
});

test('every log event of the table is used in src/', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const text = files.map((file) => readFileSync(join(root, 'src', file), 'utf8')).join('\n');
  for (const [name] of events) expect(text.includes(`'${name}'`), name).toBe(true);
});

test('the compiler rejects log events and members that are not in the table', () => {
  const lines: string[] = [];
  const log = logTo((event) => lines.push(event));
  // @ts-expect-error: there is no such event
  log.info('nothing_known');
  // @ts-expect-error: it is not logged at this level
  log.error('secret_rotated', { appliance: 'wallbox' });
  // @ts-expect-error: a member is missing
  log.info('secret_rotated', {});
  // @ts-expect-error: there is no such member
  log.info('secret_rotated', { appliance: 'wallbox', secret: 'x' });
  // @ts-expect-error: the type of the member is another
  log.info('secret_rotated', { appliance: 7 });
  // @ts-expect-error: it is not logged at this level
  log.at('error', 'token_refreshed', { expires_in: 1, generation: 1 });
  expect(lines).toHaveLength(6);
});

function described([name, { levels, meaning, members }]: [string, EventEntry]): string {
  const own = membersOf(members);
  return `### \`${name}\`\n\n${levels.join(', ')} · ${meaning}\n${own === '' ? '' : `\n${own}\n`}`;
}

function membersOf(members: EventMembers): string {
  return Object.entries(members)
    .map(([name, { type, meaning, optional }]) => `- \`${name}\` (${type}${optional ? ', optional' : ''}): ${meaning}`)
    .join('\n');
}
