import type { FastifyReply } from 'fastify';
import type { Administration, ApplianceStatus } from '../../core/administration.ts';
import type { Clock, Timers } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import { withTimeout } from '../../system/clock.ts';
import { sendFailure, withAppliance } from '../failures.ts';
import { sendInstallerPage } from '../installer-page.ts';
import { appliancePath } from '../paths.ts';
import { type Guard, parameter, type SentForm, type SignedIn } from '../sign-in/guard.ts';
import type { Texts } from '../texts/en.ts';
import { appliancePage } from './appliance-page.ts';
import { type Confirmation, confirmationPage, confirmRemoval, confirmUnpair } from './confirmations.ts';

/** What the pages of appliances are made of. */
interface ApplianceOptions {
  readonly administration: Administration;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Nobody waits longer for an answer, in ms. */
const MAX_WAIT = 8000;

/** The page of each appliance, and what can be done there. */
export function serveAppliances(guard: Guard, { administration, clock, timers }: ApplianceOptions): void {
  /** A form that does something at once. @param to where it leads then */
  function doing(
    below: string,
    act: (name: string, form: SentForm['form']) => Promise<unknown>,
    to: (name: string) => string = appliancePath,
  ): void {
    guard.form(`/appliances/:name/${below}`, async (sent: SentForm) => {
      const name = parameter(sent, 'name');
      try {
        await act(name, sent.form);
      } catch (error) {
        return sendFailure(sent, name, error);
      }
      return sent.reply.redirect(to(name), 303);
    });
  }

  function asking(below: string, confirm: (texts: Texts, appliance: ApplianceStatus) => Confirmation): void {
    guard.page(`/appliances/:name/${below}`, (asked) =>
      withAppliance(asked, administration, (appliance) => {
        const { context, session } = asked;
        if (below === 'remove' && appliance.declared) throw new Failure('appliance_declared', appliance.name);
        return sendInstallerPage(asked, 200, confirmationPage(confirm(context.texts, appliance), context, session));
      }),
    );
  }

  function show(asked: SignedIn): Promise<FastifyReply> {
    return withAppliance(asked, administration, async (appliance, { conditions, notices }) => {
      const history = await administration.history(appliance.name);
      const shown = { appliance, conditions, notices, history, now: clock.now().wall };
      return sendInstallerPage(asked, 200, appliancePage(shown, asked.context, asked.session));
    });
  }

  guard.page('/appliances/:name', show);
  guard.page('/appliances/:name/', show);
  asking('unpair', confirmUnpair);
  asking('remove', confirmRemoval);
  doing('unpair', (name) => administration.unpair(name));
  doing(
    'remove',
    (name) => administration.removeAppliance(name),
    () => '/',
  );
  doing('refresh', refresh);
  doing('approve', approve);

  /** Goes on where it takes longer: the page that follows shows what comes of it. */
  function refresh(name: string): Promise<void> {
    return withTimeout(administration.refresh(name), MAX_WAIT, timers);
  }

  /**
   * Approves the one that was shown: another may have come by its name since. Approving what somebody else has approved
   * meanwhile is no failure.
   */
  async function approve(name: string, form: SentForm['form']): Promise<void> {
    const find = async () => {
      const { appliances } = await administration.status();
      return appliances.find((one) => one.name === name && one.clientId === form.get('client_id'));
    };
    const isApproved = (appliance: ApplianceStatus | undefined) =>
      appliance !== undefined && appliance.waitingForApproval === undefined;
    const shown = await find();
    if (shown === undefined) throw new Failure('appliance_unknown', name);
    if (isApproved(shown)) return;
    try {
      await administration.approveAppliance(name, shown.waitingForApproval?.comparisonCode ?? null);
    } catch (error) {
      if (!isApproved(await find())) throw error;
    }
  }
}
