import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { logEventsPage } from '../../scripts/log-events.d/page.ts';
import { eventsBySubject } from '../../src/core/log/events.ts';
import { logTo } from '../support/log-to.ts';
import { root } from './checkout.ts';

const events = Object.values(eventsBySubject).flatMap((subject) => Object.entries(subject));

test('docs/log-events.md matches the table (otherwise run scripts/log-events)', () => {
  expect(readFileSync(join(root, 'docs/log-events.md'), 'utf8')).toBe(logEventsPage());
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
