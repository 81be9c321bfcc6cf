import { html } from 'ghtml';
import type { StatusReport } from '../../core/administration.ts';
import type { ApplianceStatus } from '../../core/appliances/appliance-status.ts';
import { Failure } from '../../core/failure.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { type AdministrationView, findAppliance } from '../administration-view.ts';
import { pathParameter } from '../http.ts';
import { backLink, csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { AuthenticatedRequest, PageContext } from '../page-context.ts';
import { appliancePath } from '../paths.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';
import { connectionOption, sharableConnections, usedConnections } from './connection-choice.ts';

/** The members of the form begin with this, before the name of a connection that is ticked. */
const TICK = 'login-';

/** Serves the form that lets an appliance use other connections. */
export function serveMove(guard: AuthenticatedRoutes, administration: AdministrationView): void {
  async function sendAgain(req: AuthenticatedRequest, chosen: readonly string[], problem: string) {
    const { appliance, status } = await findAppliance(req, administration);
    return sendInstallerPage(req, 400, movePage(req.context, req.session, appliance, status, chosen, problem));
  }

  guard.page('/appliances/:name/move', async (req) => {
    const { appliance, status } = await findAppliance(req, administration);
    if (appliance.declared) throw new Failure('appliance_declared', appliance.name);
    const used = usedConnections(appliance, status.connections).map((one) => one.name);
    return sendInstallerPage(req, 200, movePage(req.context, req.session, appliance, status, used));
  });

  guard.form('/appliances/:name/move', async (submission) => {
    const name = pathParameter(submission, 'name');
    const chosen = [...submission.form.keys()].flatMap((key) => (key.startsWith(TICK) ? key.slice(TICK.length) : []));
    const { none, gone } = submission.context.texts.connectionChoice;
    if (chosen.length === 0) return sendAgain(submission, chosen, none);
    try {
      await submission.administration.moveAppliance(name, chosen);
      return submission.reply.redirect(appliancePath(name), 303);
    } catch (error) {
      if (!(error instanceof Failure && error.code === 'connection_unknown')) throw error;
      return sendAgain(submission, chosen, gone);
    }
  });
}

/**
 * The form that lets an appliance use other connections: those that it uses come first.
 * @param chosen the names of those that are ticked
 * @param problem what is wrong with them; left out if nothing is
 */
function movePage(
  { texts }: PageContext,
  session: PageSession,
  appliance: ApplianceStatus,
  status: Pick<StatusReport, 'connections' | 'appliances'>,
  chosen: readonly string[],
  problem?: string,
): InstallerPage {
  const { name, title } = appliance;
  const { connectionChoice: own, installer } = texts;
  const heading = own.moveHeading(title);
  const used = usedConnections(appliance, status.connections);
  const offered = new Set([...used, ...sharableConnections(status)]);
  const ticks = [...offered].map((one) => {
    const { value, text } = connectionOption(one, texts);
    const checked = chosen.includes(one.name) ? ' checked' : '';
    return html`<label class="tick"><input type="checkbox" name="${TICK}${value}" value="yes"!${checked}>${text}</label>`;
  });
  const ownLogin = used.find((one) => one.own);
  const isRemoved = ownLogin?.state === 'unpaired' || ownLogin?.state === 'pairing';
  const note = problem === undefined ? '' : html`<p class="problem" id="problem" role="alert">${problem}</p>`;
  const described = problem === undefined ? '' : ' aria-describedby="problem"';
  const content = html`<fieldset class="field"!${described}><legend class="label">${own.several}</legend>!${note}!${ticks}</fieldset>
<div class="actions"><button class="primary" id="yes">${own.moveButton}</button><a class="button" href="${appliancePath(name)}">${installer.cancel}</a></div>`;
  return {
    title: heading,
    narrow: true,
    body: html`!${backLink(appliancePath(name), title)}
<h1>${heading}</h1>
<p>${own.moveText}</p>
<p>${isRemoved ? own.ownRemoved : own.unusedKept}</p>
!${csrfForm(session, appliancePath(name, 'move'), content, 'fields')}`,
  };
}
