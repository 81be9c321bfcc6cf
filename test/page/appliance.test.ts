import { expect, test } from 'vitest';
import type { Administration } from '../../src/core/administration.ts';
import { serveAppliances } from '../../src/page/appliance/appliance.ts';
import type { AuthenticatedRoutes, FormSubmission } from '../../src/page/sign-in/authenticated-routes.ts';
import { systemClock, systemTimers } from '../../src/system/clock.ts';

/** Taps "Refresh now". @returns where the response leads, and whether the wait for a slow portal had ended by then */
async function tapRefresh(refresh: () => Promise<unknown>): Promise<{ to: string; isPatienceOver: boolean }> {
  const forms = new Map<string, (sent: FormSubmission) => Promise<unknown>>();
  const guard = {
    page: () => undefined,
    form: (path: string, handler: (sent: FormSubmission) => Promise<unknown>) => void forms.set(path, handler),
  };
  let isPatienceOver = false;
  const timers = {
    ...systemTimers,
    async sleep(_delay: number, signal?: AbortSignal) {
      await systemTimers.sleep(50, signal);
      isPatienceOver = true;
    },
  };
  const status = async () => ({ appliances: [{ name: 'wallbox', connection: 'wallbox' }] });
  const administration = { refresh, status } as unknown as Administration;
  serveAppliances(guard as unknown as AuthenticatedRoutes, { administration, clock: systemClock(), timers });
  let to = '';
  const reply = {
    redirect(path: string) {
      to = path;
    },
  };
  await forms.get('/appliances/:name/refresh')?.({
    request: { params: { name: 'wallbox' } },
    reply,
    administration,
  } as unknown as FormSubmission);
  await Promise.resolve();
  return { to, isPatienceOver };
}

test('a quick refresh on the appliance page leaves no timer behind that delays the stop of the hub', async () => {
  expect(await tapRefresh(async () => undefined)).toEqual({ to: '/appliances/wallbox', isPatienceOver: true });
});

test('a slow refresh on the appliance page continues after the redirect', async () => {
  expect(await tapRefresh(() => new Promise(() => undefined))).toEqual({
    to: '/appliances/wallbox',
    isPatienceOver: true,
  });
});
