import { expect, test } from 'vitest';
import type { Administration } from '../../src/core/administration.ts';
import type { PageServices } from '../../src/page/administration-view.ts';
import { serveConnections } from '../../src/page/connection/connection.ts';
import type { FormSubmission } from '../../src/page/page-context.ts';
import type { AuthenticatedRoutes } from '../../src/page/sign-in/authenticated-routes.ts';
import { systemClock, systemTimers } from '../../src/system/clock.ts';

test('a slow refresh continues after the redirect', async () => {
  const forms = new Map<string, (sent: FormSubmission) => Promise<unknown>>();
  const guard = {
    page: () => undefined,
    form: (path: string, handler: (sent: FormSubmission) => Promise<unknown>) => void forms.set(path, handler),
  };
  // The hub waits no time for the portal.
  const timers = { ...systemTimers, sleep: async () => undefined };
  const refresh = () => new Promise(() => undefined);
  const administration = { refresh } as unknown as Administration;
  const services = { administration, clock: systemClock(), timers } as unknown as PageServices;
  serveConnections(guard as unknown as AuthenticatedRoutes, services);
  const redirects: string[] = [];
  const reply = { redirect: (path: string) => void redirects.push(path) };
  const submission = { request: { params: { name: 'wallbox' } }, reply, administration };
  await forms.get('/connections/:name/refresh')?.(submission as unknown as FormSubmission);
  expect(redirects).toEqual(['/connections/wallbox']);
});
