import { expect, test } from 'vitest';
import { HUB_CONDITION_CODES } from '../../src/core/health/hub-conditions.ts';
import { type NoticeReport, SUBJECT_NOTICES } from '../../src/core/health/notice.ts';
import { testReport } from '../../src/core/health/notice-policy.ts';
import { keysOf } from '../../src/core/keys.ts';
import { translateNotice } from '../../src/page/notice-text.ts';

const PAGE = 'https://192.168.1.7:8443/';
const TITLES = new Map([
  ['waermepumpe-keller', 'Wärmepumpe Keller'],
  ['solar', 'Solar'],
]);
const titles = {
  find(name: string) {
    const title = TITLES.get(name);
    return title === undefined ? undefined : { name, title };
  },
};
const report = (changes: Partial<NoticeReport>): NoticeReport => ({
  ...testReport('2031-04-05T06:07:08Z'),
  notice: 'pairing_needed',
  connection: 'waermepumpe-keller',
  appliance: 'waermepumpe-keller',
  appliances: ['waermepumpe-keller'],
  message: 'In English',
  what_to_do: 'In English',
  ...changes,
});
const inGerman = (changes: Partial<NoticeReport>) =>
  translateNotice(report(changes), 'de', { appliances: titles, connections: titles }, PAGE);

test('a notice in German names the appliance or the shared login by its title, and says what to do and where', () => {
  expect(inGerman({})).toMatchObject({
    appliance: 'waermepumpe-keller',
    message: 'Für Wärmepumpe Keller ist eine neue Anmeldung am Portal nötig',
    what_to_do: `Siehe ${PAGE}appliances/waermepumpe-keller`,
  });
  const shared = { connection: 'solar', appliance: null, appliances: ['waermepumpe-keller', 'dashboard'] };
  expect(inGerman(shared)).toMatchObject({
    message: 'Die Anmeldung „Solar“ muss erneuert werden. Das betrifft Wärmepumpe Keller und dashboard',
    what_to_do: `Siehe ${PAGE}connections/solar`,
  });
  expect(inGerman({ status: 'resolved' }).message).toBe('Wärmepumpe Keller: Das ist erledigt');
});

test.each([...keysOf(SUBJECT_NOTICES), ...HUB_CONDITION_CODES, 'test' as const])(
  'the notice %s has a text in German, and the hub has one in English already',
  (notice) => {
    const isOfHub = HUB_CONDITION_CODES.some((code) => code === notice) || notice === 'test';
    const subject = isOfHub ? { connection: null, appliance: null, appliances: [] } : {};
    const { message, what_to_do } = inGerman({ notice, ...subject });
    expect(`${message} ${what_to_do}`).not.toMatch(/In English|undefined|\.\./);
    const english = report({ notice, ...subject });
    expect(translateNotice(english, 'en', { appliances: titles, connections: titles }, PAGE)).toBe(english);
  },
);
