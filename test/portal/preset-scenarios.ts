import { describe, expect, test } from 'vitest';
import type { Cloud } from '../../src/clouds/cloud.ts';
import { PresetHub } from './preset-harness.ts';

const HOUR = 3_600_000;

/** The presets that stand for all: a device login with a public client; a code login; the protocol that differs most. */
export const REPRESENTATIVES: readonly string[] = ['tado', 'husqvarna', 'withings'];

/** Declares every scenario for these presets, each at the double of its cloud. */
export function testPresets(chosen: readonly Cloud[]): void {
  describe.each(chosen)('the preset $name at the double of its cloud', (preset) => {
    test('logs in, and the API takes the token', async () => {
      await using hub = await PresetHub.start(preset);
      expect(await hub.logIn()).toBe('paired');
      expect(await hub.call(await hub.token())).toBe(200);
      expect(hub.emulator.findings().failedAuthentications).toEqual([]);
    });

    test('refreshes before the token ends, time and again', async () => {
      await using hub = await PresetHub.start(preset);
      await hub.logIn();
      const tokens = new Set([await hub.token()]);
      for (let times = 1; times <= 3; times += 1) {
        await hub.untilRefreshed();
        tokens.add(await hub.token());
        expect(await hub.call(await hub.token())).toBe(200);
      }
      expect(tokens.size).toBe(4);
      expect(hub.refreshes).toHaveLength(3);
      expect(hub.status).toMatchObject({ state: 'active', problem: null });
    });

    test('after a lost answer it tries the old refresh token again when the cloud permits it', async () => {
      await using hub = await PresetHub.start(preset);
      await hub.logIn();
      const pairedAt = hub.emulator.grants()[0]?.createdAt ?? 0;
      hub.emulator.addFault({ kind: 'commit_then_drop', endpoint: 'token' });
      await hub.untilRefreshed();
      await hub.passUntil(() => hub.refreshes.length > 1 && hub.status.state !== 'retrying', hub.lifetime);
      const [lostAt = 0, retriedAt = 0] = hub.refreshes.map(({ time }) => Date.parse(time));
      if (preset.settings.retry_lost_answer === 'early') expect(retriedAt - lostAt).toBeLessThan(5000);
      else expect(retriedAt - pairedAt).toBeGreaterThan(0.98 * hub.lifetime);
      expect(hub.harness.events.map(({ event }) => event)).toContain('answer_lost');
      // Whether the double of the cloud accepts the old refresh token after a lost answer.
      const { refreshGrace, refreshGraceTime, refreshRotation } = hub.emulator.settings;
      const survives = refreshGrace > 0 || refreshGraceTime > 0 || refreshRotation === 'never';
      expect(hub.status).toMatchObject(
        survives ? { state: 'active', problem: null } : { state: 'needs_pairing', problem: { code: 'refused' } },
      );
      expect(await hub.harness.run.store.grants.all()).toHaveLength(1);
      if (survives) expect(await hub.call(await hub.token())).toBe(200);
      else expect(hub.status.problem?.message).toMatch(/^An answer was lost on /);
    });

    test('a login that the cloud has ended needs a person, and its grant is kept', async () => {
      await using hub = await PresetHub.start(preset);
      await hub.logIn();
      for (const { id } of hub.emulator.grants()) hub.emulator.revoke(id);
      await hub.untilRefreshed();
      await hub.passUntil(() => hub.status.state === 'needs_pairing', hub.lifetime + 6 * HOUR);
      expect(hub.status).toMatchObject({ state: 'needs_pairing' });
      expect(await hub.harness.run.store.grants.all()).toHaveLength(1);
    });

    test('unpairing revokes the login if the cloud can do that, and sends nothing otherwise', async () => {
      await using hub = await PresetHub.start(preset);
      await hub.logIn();
      const token = await hub.token();
      const before = hub.emulator.requests.length;
      expect(await hub.unpair()).toBe(preset.settings.revocation_endpoint !== undefined);
      const sent = hub.emulator.requests.slice(before);
      if (preset.settings.revocation_endpoint === undefined) {
        expect(sent).toEqual([]);
        expect(await hub.call(token)).toBe(200);
      } else {
        expect(sent).toMatchObject([{ endpoint: 'revoke', status: 200 }]);
        expect(await hub.call(token)).toBeGreaterThanOrEqual(401);
      }
      expect(await hub.harness.run.store.grants.all()).toEqual([]);
    });
  });
}
