import type { Administration, ApplianceStatus } from '../../core/administration.ts';
import type { Clock, Timers } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import { withTimeout } from '../../system/clock.ts';
import { sendFailure } from '../failures.ts';
import { sendInstallerPage } from '../installer-page.ts';
import { type Question, questionPage } from '../questions.ts';
import type { Guard, SentForm, SignedIn } from '../sign-in/guard.ts';
import type { Texts } from '../texts/en.ts';
import { appliancePage } from './appliance-page.ts';
import { appliancePath } from './appliance-path.ts';
import { removeQuestion, unpairQuestion } from './appliance-questions.ts';

/** What the pages of appliances are made of. */
interface ApplianceOptions {
  readonly administration: Administration;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Nobody waits longer for an answer, in ms. */
const LONGEST_WAIT = 8000;

/** The page of each appliance, and what can be done there. */
export function serveAppliances(guard: Guard, { administration, clock, timers }: ApplianceOptions): void {
  /** Answers with what is known of the appliance, or that there is none of that name. */
  async function named(
    asked: SignedIn,
    answer: (appliance: ApplianceStatus) => ReturnType<typeof sendInstallerPage>,
  ): ReturnType<Parameters<Guard['page']>[1]> {
    const name = nameOf(asked);
    const { appliances } = await administration.status();
    const appliance = appliances.find((one) => one.name === name);
    if (appliance === undefined) return sendFailure(asked, name, new Failure('appliance_unknown', name));
    return answer(appliance);
  }

  /** A form that does something at once. @param to where it leads then */
  function doing(
    below: string,
    act: (name: string, form: SentForm['form']) => Promise<unknown>,
    to: (name: string) => string,
  ): void {
    guard.form(`/appliances/:name/${below}`, async (sent: SentForm) => {
      const name = nameOf(sent);
      try {
        await act(name, sent.form);
      } catch (error) {
        return sendFailure(sent, name, error);
      }
      return sent.reply.redirect(to(name), 303);
    });
  }

  function asking(below: string, question: (texts: Texts, appliance: ApplianceStatus) => Question): void {
    guard.page(`/appliances/:name/${below}`, (asked) =>
      named(asked, (appliance) => {
        const { frame, session } = asked;
        if (below === 'remove' && appliance.declared) {
          return sendFailure(asked, appliance.name, new Failure('appliance_declared', appliance.name));
        }
        return sendInstallerPage(asked, 200, questionPage(question(frame.texts, appliance), frame, session));
      }),
    );
  }

  async function show(asked: SignedIn) {
    const name = nameOf(asked);
    const { appliances, notices } = await administration.status();
    const appliance = appliances.find((one) => one.name === name);
    try {
      if (appliance === undefined) throw new Failure('appliance_unknown', name);
      const history = await administration.history(name);
      const shown = { appliance, notices, history, now: clock.now().wall };
      return sendInstallerPage(asked, 200, appliancePage(shown, asked.frame, asked.session));
    } catch (error) {
      return sendFailure(asked, name, error);
    }
  }

  guard.page('/appliances/:name', show);
  guard.page('/appliances/:name/', show);
  asking('unpair', unpairQuestion);
  asking('remove', removeQuestion);
  doing('unpair', (name) => administration.unpair(name), appliancePath);
  doing(
    'remove',
    (name) => administration.removeAppliance(name),
    () => '/',
  );
  doing('refresh', refresh, appliancePath);
  doing('approve', approve, appliancePath);

  /** Goes on where it takes longer: the page that follows shows what comes of it. */
  function refresh(name: string): Promise<void> {
    return withTimeout(administration.refresh(name), LONGEST_WAIT, timers);
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

function nameOf({ request }: SignedIn): string {
  return (request.params as { readonly name: string }).name;
}
