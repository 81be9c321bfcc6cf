import type { NoticeReport } from '../core/health/notice.ts';
import type { Named } from '../core/name.ts';
import { renewalText } from './connection-names.ts';
import { textsFor } from './page-context.ts';
import { appliancePath, connectionPath } from './paths.ts';
import type { Texts } from './texts/en.ts';

/** Where the titles of appliances or connections are, by their names. */
interface Titles {
  find(name: string): Named | undefined;
}

/**
 * A notice in a language of the page. In English it keeps its own message, which says more than the page.
 * @param language BCP 47
 * @param page the address of the hub's page, with a slash at its end
 */
export function translateNotice(
  report: NoticeReport,
  language: string,
  { appliances, connections }: { readonly appliances: Titles; readonly connections: Titles },
  page: string,
): NoticeReport {
  if (language === 'en') return report;
  const texts = textsFor(language);
  const { notices } = texts.states;
  if (report.notice === 'test') return { ...report, message: notices.test, what_to_do: notices.nothing };
  const { appliance, connection } = report;
  const titleIn = (titles: Titles, name: string) => titles.find(name)?.title ?? name;
  const login = connection === null ? '' : titleIn(connections, connection);
  const [about, path] =
    appliance !== null
      ? [titleIn(appliances, appliance), appliancePath(appliance)]
      : connection !== null
        ? [texts.connection.title(login), connectionPath(connection)]
        : [notices.hub, '/'];
  if (report.status === 'resolved') return { ...report, message: notices.over(about), what_to_do: notices.nothing };
  const users = report.appliances.map((name) => titleIn(appliances, name));
  const text =
    report.notice === 'pairing_needed' && appliance === null
      ? renewalText(login, users, texts)
      : noticeText(report.notice, about, texts);
  const message = text.includes(about) ? text : `${about}: ${text}`;
  // A receiver adds the full stop itself.
  return { ...report, message: message.replace(/\.$/, ''), what_to_do: notices.open(page + path.slice(1)) };
}

/** @param about what the notice is about */
function noticeText(code: Exclude<NoticeReport['notice'], 'test'>, about: string, { overview, states }: Texts): string {
  switch (code) {
    case 'pairing_needed':
      return overview.headlines.needsLogin(about, 1);
    case 'token_ending':
    case 'refresh_failing':
      return overview.headlines.notRefreshed(about, 1);
    case 'misconfigured':
    case 'portal_missing':
    case 'answer_lost':
    case 'login_ending':
    case 'permissions_missing':
    case 'approval_needed':
      return states.conditions[code](about);
    default:
      return states.hub[code];
  }
}
