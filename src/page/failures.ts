import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import type { Administration, ApplianceStatus, StatusReport } from '../core/administration.ts';
import { Failure, type FailureCode } from '../core/failure.ts';
import { icon } from './elements.ts';
import { backLink, type InstallerPage, sendInstallerPage } from './installer-page.ts';
import { appliancePath } from './paths.ts';
import { type AuthenticatedRequest, pathParameter } from './sign-in/authenticated-routes.ts';

/** Characters of a name that nobody has, as it is told. */
const MAX_SHOWN_NAME_LENGTH = 63;

/**
 * Tells in plain words why something was not done to an appliance, with a way back.
 * @throws the error itself, where it is no failure that people can do anything about
 */
export function sendFailure(asked: AuthenticatedRequest, name: string, error: unknown): FastifyReply {
  if (!(error instanceof Failure)) throw error;
  const { appliance } = asked.context.texts;
  if (error.code === 'appliance_unknown') return sendUnknownAppliance(asked, name);
  const failures: Partial<Record<FailureCode, string>> = appliance.failures;
  const text = failures[error.code] ?? appliance.failures.other;
  const back = { href: appliancePath(name), text: appliance.backToAppliance(name) };
  return sendInstallerPage(asked, 409, failurePage(appliance.nothingChanged, text, back));
}

/**
 * Answers with what is known of the appliance that the path names, or says in plain words why not.
 * @param answer may throw what {@link sendFailure} tells
 */
export async function withAppliance(
  asked: AuthenticatedRequest,
  administration: Pick<Administration, 'status'>,
  answer: (appliance: ApplianceStatus, status: StatusReport) => FastifyReply | Promise<FastifyReply>,
): Promise<FastifyReply> {
  const name = pathParameter(asked, 'name');
  try {
    const status = await administration.status();
    const appliance = status.appliances.find((one) => one.name === name);
    if (appliance === undefined) throw new Failure('appliance_unknown', name);
    return await answer(appliance, status);
  } catch (error) {
    return sendFailure(asked, name, error);
  }
}

/** There is no such appliance, perhaps no longer. */
function sendUnknownAppliance(asked: AuthenticatedRequest, name: string): FastifyReply {
  const { appliance } = asked.context.texts;
  const back = { href: '/', text: appliance.backToOverview };
  const text = appliance.notFoundText(name.slice(0, MAX_SHOWN_NAME_LENGTH));
  return sendInstallerPage(asked, 404, failurePage(appliance.notFound, text, back));
}

/** Answers, or says in plain words why a pairing, or an appliance's, can't be shown or changed. */
export async function handlePairingFailures(
  asked: AuthenticatedRequest,
  answer: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  try {
    return await answer();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { pairing: texts } = asked.context.texts;
    const refuse = (status: number, heading: string, text: string) =>
      sendInstallerPage(asked, status, failurePage(heading, text, { href: '/', text: texts.toOverview }));
    switch (error.code) {
      case 'pairing_unknown':
        return refuse(404, texts.notFound, texts.notFoundText);
      case 'appliance_unknown':
      case 'name_invalid':
        return sendUnknownAppliance(asked, pathParameter(asked, 'name'));
      case 'not_allowed':
        return refuse(409, texts.notPossible, texts.tooMany);
      case 'store_unwritable':
        return refuse(507, texts.notPossible, texts.storeUnwritable);
      default:
        throw error;
    }
  }
}

/** Why something could not be done, and the way back. */
export function failurePage(
  heading: string,
  text: string,
  back: { readonly href: string; readonly text: string },
): InstallerPage {
  return {
    title: heading,
    narrow: true,
    body: html`<div class="health">!${icon('bad')}<h1>${heading}</h1></div>
<p>${text}</p>
!${backLink(back.href, back.text)}`,
  };
}
