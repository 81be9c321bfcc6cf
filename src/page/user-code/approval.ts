import type { FastifyReply } from 'fastify';
import { html } from 'ghtml';
import type { Administration } from '../../core/administration.ts';
import type { FoundDeviceFlow } from '../../core/lan-service.ts';
import type { PageServices } from '../administration-view.ts';
import { joinTitles } from '../connection-names.ts';
import { readQuery } from '../http.ts';
import { csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { AuthenticatedRequest, PageRequest } from '../page-context.ts';
import { userCodePath } from '../paths.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';
import { approvalHeading, hasCurrentCode } from './user-code-pages.ts';

/**
 * Serves the question whether an appliance that has begun a device flow may use its connection, which is connected
 * already. `/pair` leads here, and shows the result.
 */
export function serveDeviceFlowApproval(guard: AuthenticatedRoutes, { administration, service }: PageServices): void {
  guard.page('/pair/approve', async (req) => {
    const userCode = readQuery(req.request)?.get('user_code') ?? '';
    const found = await service.findPairingByUserCode(userCode);
    if (found === null || !found.isApprovable || !hasCurrentCode(found.pairing, userCode))
      return redirectToResult(req, userCode);
    return sendApprovalPage(req, administration, found);
  });

  const serveDecision = (path: string, decide: (userCode: string, user?: string) => Promise<void>) =>
    guard.form(path, async (submission) => {
      const userCode = submission.form.get('user_code') ?? '';
      await decide(userCode, submission.context.ingress?.userName ?? undefined);
      return redirectToResult(submission, userCode);
    });
  serveDecision('/pair/approve', (userCode, user) => service.approveDeviceFlow(userCode, user));
  serveDecision('/pair/refuse', (userCode) => service.refuseDeviceFlow(userCode));
}

/** Sends the question to a browser that is signed in. */
export async function sendApprovalPage(
  req: PageRequest,
  administration: Pick<Administration, 'status'>,
  found: FoundDeviceFlow,
): Promise<FastifyReply> {
  const { connections } = await administration.status();
  const account = connections.find(({ name }) => name === found.connection)?.account ?? null;
  return sendInstallerPage(req, 200, approvalPage(req, found, account));
}

/** Behind a reverse proxy there is no `/pair`; the overview shows what has become of the appliance. */
function redirectToResult({ reply, context }: AuthenticatedRequest, userCode: string): FastifyReply {
  const path = context.ingress === undefined ? userCodePath(userCode) : '/';
  return reply.header('cache-control', 'no-store').redirect(path, 303);
}

/** The question, and whose login the appliance would use. */
function approvalPage(
  { context: { texts }, session }: PageRequest,
  found: FoundDeviceFlow,
  account: string | null,
): InstallerPage {
  const { adding, code, overview, connection } = texts;
  const { appliance, pairing, users } = found;
  const heading = approvalHeading(found, code);
  const userCode = pairing.device?.userCode ?? '';
  const field = html`<input type="hidden" name="user_code" value="${userCode}">`;
  const others = users.filter(({ name }) => name !== appliance.name);
  const rows = [
    ...(account === null ? [] : [[overview.account, account] as const]),
    [adding.scope, pairing.scope ?? overview.scopeByPortal] as const,
    ...(others.length === 0 ? [] : [[connection.usedBy, joinTitles(others, texts)] as const]),
  ];
  return {
    title: heading,
    narrow: true,
    body: html`<h1>${heading}</h1>
<p>${code.connectedAlready}</p>
<section class="card" aria-label="${code.label}"><p>${code.compareToAllow}</p><p><code class="compare">${userCode}</code></p></section>
<dl class="facts">!${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
<div class="actions">!${csrfForm(session, '/pair/approve', html`!${field}<button class="primary" id="allow">${code.allow}</button>`)}
!${csrfForm(session, '/pair/refuse', html`!${field}<button class="danger" id="refuse">${overview.reject}</button>`)}</div>`,
  };
}
