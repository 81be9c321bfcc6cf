import { describe, expect, test } from 'vitest';
import type { Fault } from './site/fault-log.ts';
import { auditSends, type FirstHandOut, type TokenSend } from './site/send-audit.ts';

const SECOND = 1000;
const START = Date.parse('2026-01-01T00:00:00Z');

/** A send of the first token of a grant, which the portal has exchanged. @param seconds after the start */
function send(hub: string, seconds: number, change: Partial<TokenSend> = {}): TokenSend {
  const at = START + seconds * SECOND;
  return { token: 'token-1', grant: 'grant', generation: 1, hub, at, status: 200, successor: 'token-2', ...change };
}

function fault(kind: Fault['kind'], hub: string | null, from: number, to: number): Fault {
  return { kind, hub, from: START + from * SECOND, to: START + to * SECOND };
}

/** The reasons for the second sends. */
function reasons(sends: readonly TokenSend[], faults: readonly Fault[], handOuts: readonly FirstHandOut[] = []) {
  return auditSends(sends, faults, handOuts).map(({ reason }) => reason);
}

const REUSED = { status: 400, successor: null };

describe('audit of the refresh tokens that the portal of a site has received', () => {
  test('tokens that were sent once need no explanation', () => {
    expect(reasons([send('a', 0), send('b', 40, { token: 'token-2', generation: 2 })], [])).toEqual([]);
  });

  test('a second send without a fault is not explained, however late it is', () => {
    expect(reasons([send('a', 0), send('b', 1, REUSED)], [])).toEqual([null]);
    expect(reasons([send('a', 0), send('b', 500, REUSED)], [])).toEqual([null]);
  });

  test('a kill explains a second send of the hub itself, and one of another hub after the lease', () => {
    const killed = fault('killed', 'a', 0.2, 20);
    expect(reasons([send('a', 0), send('a', 22, REUSED)], [killed])).toEqual(['hub_killed']);
    expect(reasons([send('a', 0), send('b', 190, REUSED)], [fault('killed', 'a', 0.2, 300)])).toEqual(['hub_killed']);
  });

  test('a kill explains no second send of another hub during the lease', () => {
    expect(reasons([send('a', 0), send('b', 60, REUSED)], [fault('killed', 'a', 0.2, 300)])).toEqual([null]);
  });

  test('a kill explains a second send of another hub as soon as the daemon was started again, ready or not', () => {
    const faults = [fault('killed', 'a', 0.2, 90), fault('down', 'a', 0.2, 20)];
    expect(reasons([send('a', 0), send('b', 60, REUSED)], faults)).toEqual(['hub_killed']);
    expect(reasons([send('a', 0), send('b', 15, REUSED)], faults)).toEqual([null]);
  });

  test('a kill or the end of a pause long before explains nothing, because the hub had time to write the tokens', () => {
    expect(reasons([send('a', 0), send('a', 70, REUSED)], [fault('killed', 'a', 50, 65)])).toEqual([null]);
    expect(reasons([send('a', 0), send('b', 185, REUSED)], [fault('paused', 'a', 0.1, 100)])).toEqual([null]);
    const away = fault('database_away', null, 0.5, 28);
    expect(reasons([send('a', 0), send('a', 70, REUSED)], [away, fault('killed', 'a', 50, 65)])).toEqual([
      'hub_killed',
    ]);
  });

  test('the fault of another hub explains nothing', () => {
    expect(reasons([send('a', 0), send('b', 190, REUSED)], [fault('killed', 'c', 0.2, 20)])).toEqual([null]);
  });

  test('a pause explains a second send only after the lease', () => {
    const paused = fault('paused', 'a', 0.1, 250);
    expect(reasons([send('a', 0), send('b', 185, REUSED)], [paused])).toEqual(['hub_paused']);
    expect(reasons([send('a', 0), send('b', 60, REUSED)], [paused])).toEqual([null]);
  });

  test('an outage of the database explains no second send, because the hub that got the tokens writes them later', () => {
    expect(reasons([send('a', 0), send('b', 190, REUSED)], [fault('database_away', null, 0.1, 5)])).toEqual([null]);
  });

  test('a partition from the portal explains a second send after the answer was cut', () => {
    const cut = fault('cut_from_portal', 'a', 0.1, 50);
    expect(reasons([send('a', 0), send('a', 63, REUSED)], [cut])).toEqual(['answer_cut']);
  });

  test('a second send is not explained if the successor was sent before, or handed out by another hub', () => {
    const faults = [fault('killed', 'a', 0.2, 20)];
    const sends = [send('a', 0), send('b', 15, { token: 'token-2', generation: 2 }), send('a', 22, REUSED)];
    expect(reasons(sends, faults)).toEqual([null]);
    const handOut = (hub: string) => [{ grant: 'grant', generation: 2, hub, at: START + 10 * SECOND }];
    expect(reasons([send('a', 0), send('a', 22, REUSED)], faults, handOut('b'))).toEqual([null]);
    expect(reasons([send('a', 0), send('a', 22, REUSED)], faults, handOut('a'))).toEqual(['hub_killed']);
  });

  test('a send right after the end of a pause of its own hub is listed apart', () => {
    const sends = [send('a', 200), send('b', 200.5, REUSED)];
    expect(reasons(sends, [fault('paused', 'b', 0, 200.4)])).toEqual(['paused_before_send']);
    expect(reasons(sends, [fault('paused', 'b', 0, 150)])).toEqual([null]);
  });
});
