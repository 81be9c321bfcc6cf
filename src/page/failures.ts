import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import type { Administration, StatusReport } from '../core/administration.ts';
import type { ApplianceStatus } from '../core/appliances/appliance-status.ts';
import type { ConnectionStatus } from '../core/connections/connection-status.ts';
import { Failure, type FailureCode } from '../core/failure.ts';
import { findNamed } from '../core/name.ts';
import { icon } from './elements.ts';
import { backLink, type InstallerPage, sendInstallerPage } from './installer-page.ts';
import { appliancePath, connectionPath } from './paths.ts';
import { type AuthenticatedRequest, pathParameter } from './sign-in/authenticated-routes.ts';

/**
 * Sends a page that says why an action on an appliance failed, with a link back.
 * @throws `error` itself if it is not a {@link Failure}
 */
export function sendFailure(req: AuthenticatedRequest, name: string, error: unknown): FastifyReply {
  if (!(error instanceof Failure)) throw error;
  const { adding, appliance, connectionChoice } = req.context.texts;
  if (error.code === 'appliance_unknown') return sendUnknownAppliance(req);
  const failures: Partial<Record<FailureCode, string>> = {
    ...appliance.failures,
    connection_unknown: connectionChoice.gone,
    portal_unknown: adding.portalUnknown,
  };
  return sendNothingChanged(req, failures[error.code] ?? appliance.failures.other, name);
}

/** Sends a page that says why an action on an appliance changed nothing, with a link back. */
export function sendNothingChanged(req: AuthenticatedRequest, text: string, name: string): FastifyReply {
  const { appliance } = req.context.texts;
  const back = { href: appliancePath(name), text: appliance.backToAppliance };
  return sendInstallerPage(req, 409, failurePage(appliance.nothingChanged, text, back));
}

/** As {@link sendFailure}, for an action on a connection. */
export function sendConnectionFailure(req: AuthenticatedRequest, name: string, error: unknown): FastifyReply {
  if (!(error instanceof Failure)) throw error;
  const { appliance, connection } = req.context.texts;
  if (error.code === 'connection_unknown' || error.code === 'name_invalid') return sendUnknownConnection(req);
  const failures: Partial<Record<FailureCode, string>> = { ...appliance.failures, ...connection.failures };
  const back = { href: connectionPath(name), text: connection.backTo };
  const text = failures[error.code] ?? appliance.failures.other;
  return sendInstallerPage(req, 409, failurePage(appliance.nothingChanged, text, back));
}

/**
 * Calls the handler with the status of the appliance that the path names, and sends a page for a {@link Failure}.
 * @param handler may throw a {@link Failure}
 */
export async function withAppliance(
  req: AuthenticatedRequest,
  administration: Pick<Administration, 'status'>,
  handler: (appliance: ApplianceStatus, status: StatusReport) => FastifyReply | Promise<FastifyReply>,
): Promise<FastifyReply> {
  const name = pathParameter(req, 'name');
  try {
    const status = await administration.status();
    const appliance = findNamed(status.appliances, name);
    if (appliance === undefined) throw new Failure('appliance_unknown', name);
    return await handler(appliance, status);
  } catch (error) {
    return sendFailure(req, name, error);
  }
}

/** Sends the page for an appliance that does not exist, or no longer exists. */
function sendUnknownAppliance(req: AuthenticatedRequest): FastifyReply {
  const { appliance } = req.context.texts;
  const back = { href: '/', text: appliance.backToOverview };
  return sendInstallerPage(req, 404, failurePage(appliance.notFound, appliance.notFoundText, back));
}

/** Sends the page for a connection that does not exist, or no longer exists. */
function sendUnknownConnection(req: AuthenticatedRequest): FastifyReply {
  const { appliance, connection } = req.context.texts;
  const back = { href: '/', text: appliance.backToOverview };
  return sendInstallerPage(req, 404, failurePage(connection.notFound, connection.notFoundText, back));
}

/**
 * Calls the handler with the status of the connection that the path names, and sends a page for a {@link Failure}.
 * @param handler may throw a {@link Failure}
 */
export async function withConnection(
  req: AuthenticatedRequest,
  administration: Pick<Administration, 'status'>,
  handler: (connection: ConnectionStatus, status: StatusReport) => FastifyReply | Promise<FastifyReply>,
): Promise<FastifyReply> {
  const name = pathParameter(req, 'name');
  try {
    const status = await administration.status();
    const connection = findNamed(status.connections, name);
    if (connection === undefined) throw new Failure('connection_unknown', name);
    return await handler(connection, status);
  } catch (error) {
    return sendConnectionFailure(req, name, error);
  }
}

/** The status of an appliance. @throws Failure `appliance_unknown` */
export async function findAppliance(
  administration: Pick<Administration, 'status'>,
  name: string,
): Promise<ApplianceStatus> {
  const { appliances } = await administration.status();
  const appliance = appliances.find((one) => one.name === name);
  if (appliance === undefined) throw new Failure('appliance_unknown', name);
  return appliance;
}

/** Calls the handler, and sends a page for a {@link Failure} of a pairing. @throws every other error */
export async function handlePairingFailures(
  req: AuthenticatedRequest,
  handler: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  try {
    return await handler();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { pairing: texts } = req.context.texts;
    const sendError = (status: number, heading: string, text: string) =>
      sendInstallerPage(req, status, failurePage(heading, text, { href: '/', text: texts.toOverview }));
    switch (error.code) {
      case 'pairing_unknown':
        return sendError(404, texts.notFound, texts.notFoundText);
      case 'connection_unknown':
        return sendUnknownConnection(req);
      case 'appliance_unknown':
      case 'name_invalid':
        return sendUnknownAppliance(req);
      case 'not_allowed':
        return sendError(409, texts.notPossible, texts.tooMany);
      case 'store_unwritable':
        return sendError(507, texts.notPossible, texts.storeUnwritable);
      default:
        throw error;
    }
  }
}

/** A page with an error and a link back. */
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
