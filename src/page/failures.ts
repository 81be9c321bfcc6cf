import type { FastifyReply } from 'fastify';
import { Failure, type FailureCode } from '../core/failure.ts';
import { appliancePath } from './appliance/appliance-path.ts';
import { sendInstallerPage } from './installer-page.ts';
import { refusalPage } from './questions.ts';
import type { SignedIn } from './sign-in/guard.ts';

/** Characters of a name that nobody has, as it is told. */
const LONGEST_SHOWN = 63;

/**
 * Tells in plain words why something was not done to an appliance, with a way back.
 * @throws the error itself, where it is no failure that people can do anything about
 */
export function sendFailure(asked: SignedIn, name: string, error: unknown): FastifyReply {
  if (!(error instanceof Failure)) throw error;
  const { appliance } = asked.frame.texts;
  if (error.code === 'appliance_unknown') return sendGone(asked, name);
  const failures: Partial<Record<FailureCode, string>> = appliance.failures;
  const text = failures[error.code] ?? appliance.failures.other;
  const back = { href: appliancePath(name), text: appliance.backToAppliance(name) };
  return sendInstallerPage(asked, 409, refusalPage(appliance.notDone, text, back));
}

/** There is no such appliance, perhaps no longer. */
function sendGone(asked: SignedIn, name: string): FastifyReply {
  const { appliance } = asked.frame.texts;
  const back = { href: '/', text: appliance.backToOverview };
  const text = appliance.goneText(name.slice(0, LONGEST_SHOWN));
  return sendInstallerPage(asked, 404, refusalPage(appliance.gone, text, back));
}
