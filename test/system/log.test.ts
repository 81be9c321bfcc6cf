import { describe, expect, test } from 'vitest';
import { createLog, withPriorities } from '../../src/system/log.ts';

function logAt(level: 'debug' | 'info' = 'info') {
  const lines: Record<string, unknown>[] = [];
  const time = { now: 0 };
  const log = createLog(level, { write: (line) => lines.push(JSON.parse(line)) }, () => time.now);
  return { log, lines, time };
}

describe('suppression of repeated events', () => {
  test('the log writes a repeated event twenty times, then twice a minute with the count of suppressed lines', () => {
    const { log, lines, time } = logAt();
    for (let i = 0; i < 1000; i++)
      log.warn('login_confirmation_needed', { connection: 'wallbox', address: '10.0.0.9' });
    expect(lines).toHaveLength(20);
    time.now += 30_000;
    for (let i = 0; i < 10; i++) log.warn('login_confirmation_needed', { connection: 'wallbox', address: '10.0.0.9' });
    expect(lines).toHaveLength(21);
    expect(lines[20]).toMatchObject({
      level: 'warn',
      event: 'login_confirmation_needed',
      connection: 'wallbox',
      suppressed: 980,
    });
    time.now += 3_600_000;
    log.warn('login_confirmation_needed', { connection: 'wallbox', address: '10.0.0.9' });
    expect(lines[21]).toMatchObject({ suppressed: 9 });
    log.warn('login_confirmation_needed', { connection: 'wallbox', address: '10.0.0.9' });
    expect(lines[22]).not.toHaveProperty('suppressed');
  });

  test('the suppression of a repeated event does not affect other events, appliances and connections', () => {
    const { log, lines } = logAt();
    for (let i = 0; i < 100; i++) log.info('secret_rotated', { appliance: 'wallbox' });
    log.info('secret_rotated', { appliance: 'heat-pump' });
    for (let i = 0; i < 100; i++) log.error('grant_damaged', { connection: 'wallbox' });
    log.error('grant_damaged', { connection: 'heat-pump' });
    expect(lines.slice(20, 22)).toMatchObject([{ appliance: 'heat-pump' }, { event: 'grant_damaged' }]);
    expect(lines.slice(40)).toMatchObject([{ connection: 'wallbox' }, { connection: 'heat-pump' }]);
  });

  test('the log writes at most one line a second of an event over all appliances, after a burst', () => {
    const { log, lines, time } = logAt();
    for (let i = 0; i < 10_000; i++) log.info('secret_rotated', { appliance: `appliance-${i}` });
    expect(lines).toHaveLength(500);
    time.now += 10_000;
    for (let i = 0; i < 10_000; i++) log.info('secret_rotated', { appliance: `appliance-${i}` });
    expect(lines).toHaveLength(510);
  });

  test('the log suppresses nothing at level debug', () => {
    const { log, lines } = logAt('debug');
    for (let i = 0; i < 100; i++) log.debug('snapshot_schedule', { message: 'x' });
    expect(lines).toHaveLength(100);
  });
});

test('the log truncates a long field to 8192 characters', () => {
  const { log, lines } = logAt();
  log.warn('too_many_registrations', { address: 'x'.repeat(100_000), count: 7 });
  expect(lines).toMatchObject([{ address: `${'x'.repeat(8192)}…`, count: 7 }]);
});

test('each log line for the journal begins with its priority, followed by the usual JSON', () => {
  const lines: string[] = [];
  const log = createLog('debug', withPriorities({ write: (line) => lines.push(line) }));
  log.debug('snapshot_schedule', { message: 'x' });
  log.info('metrics_listening', { host: '::1', port: 7 });
  log.warn('reload_unavailable');
  log.error('invites_discarded');
  expect(lines.map((line) => line.slice(0, 3))).toEqual(['<7>', '<6>', '<4>', '<3>']);
  expect(JSON.parse(lines[1]?.slice(3) ?? '')).toMatchObject({
    level: 'info',
    event: 'metrics_listening',
    host: '::1',
    port: 7,
  });
});
