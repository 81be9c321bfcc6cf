import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import { type Failure, type FailureCode, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { icon } from './elements.ts';
import { pathParameter } from './http.ts';
import { backLink, type InstallerPage, sendInstallerPage } from './installer-page.ts';
import type { AuthenticatedRequest } from './page-context.ts';
import { appliancePath, connectionPath } from './paths.ts';

/** Sends a page that says why a request failed, with a link back. A reason that it does not know is in the log. */
export function sendFailure(req: AuthenticatedRequest, failure: Failure, log: Log): FastifyReply {
  const { code } = failure;
  const { adding, appliance, connection, connectionChoice, pairing, portal } = req.context.texts;
  const area = areaOf(req);
  const sendUnknown = (heading: string, text: string) =>
    sendInstallerPage(req, 404, failurePage(heading, text, { href: '/', text: appliance.backToOverview }));
  if (code === 'pairing_unknown') return sendUnknown(pairing.notFound, pairing.notFoundText);
  const isConnectionUnknown =
    (code === 'connection_unknown' && area !== 'appliances') || (code === 'name_invalid' && area === 'connections');
  if (isConnectionUnknown) return sendUnknown(connection.notFound, connection.notFoundText);
  if (code === 'appliance_unknown' || code === 'name_invalid')
    return sendUnknown(appliance.notFound, appliance.notFoundText);
  const failures: Partial<Record<FailureCode, string>> = {
    ...appliance.failures,
    ...connection.failures,
    ...portal.failures,
    connection_unknown: connectionChoice.gone,
    ...(area === 'appliances' && { portal_unknown: adding.portalUnknown }),
  };
  const text = failures[code];
  if (text === undefined) log.error('request_failed', { error: messageOf(failure) });
  return sendNothingChanged(
    req,
    text ?? appliance.failures.other,
    code === 'portal_unknown' && area === 'portals' ? 404 : 409,
  );
}

/** Sends a page that says why an action changed nothing, with a link to what it was about. */
function sendNothingChanged(req: AuthenticatedRequest, text: string, status: 404 | 409 = 409): FastifyReply {
  const { nothingChanged } = req.context.texts.appliance;
  return sendInstallerPage(req, status, failurePage(nothingChanged, text, linkBack(req)));
}

/** A page with an error and a link back. */
export function failurePage(heading: string, text: string, back: Link): InstallerPage {
  return {
    title: heading,
    narrow: true,
    body: html`<div class="health">!${icon('bad')}<h1>${heading}</h1></div>
<p>${text}</p>
!${backLink(back.href, back.text)}`,
  };
}

interface Link {
  readonly href: string;
  readonly text: string;
}

/** The first part of the path, such as `appliances`. */
function areaOf({ request }: AuthenticatedRequest): string {
  return request.url.split('/')[1] ?? '';
}

/** The page of the appliance or connection that the path names, the list of the portals, or the overview. */
function linkBack(req: AuthenticatedRequest): Link {
  const { appliance, connection, portal } = req.context.texts;
  const area = areaOf(req);
  const name = pathParameter(req, 'name');
  if (area === 'portals') return { href: '/portals', text: portal.manage };
  if (area === 'appliances' && name !== '') return { href: appliancePath(name), text: appliance.backToAppliance };
  if (area === 'connections' && name !== '') return { href: connectionPath(name), text: connection.backTo };
  return { href: '/', text: appliance.backToOverview };
}
