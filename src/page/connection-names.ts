import type { PairedConnection } from '../core/lan-service.ts';
import type { Named } from '../core/name.ts';
import { appliancePath, connectionPath } from './paths.ts';
import type { Texts } from './texts/en.ts';

/** Names in one sentence; if there are more, the others are counted. */
const MAX_LISTED_NAMES = 4;

/** Names as part of a sentence, such as "thermostat and dashboard". */
function joinNames(names: readonly string[], { language, connection }: Texts): string {
  const listed =
    names.length > MAX_LISTED_NAMES
      ? [...names.slice(0, MAX_LISTED_NAMES - 1), connection.others(names.length - MAX_LISTED_NAMES + 1)]
      : names;
  // "en" alone writes a comma before "and".
  return new Intl.ListFormat(language === 'en' ? 'en-GB' : language, { type: 'conjunction' }).format(listed);
}

/** The titles of appliances as part of a sentence. */
export function joinTitles(users: readonly Named[], texts: Texts): string {
  return joinNames(
    users.map(({ title }) => title),
    texts,
  );
}

/** What people call appliances or connections, by their names. */
export function titlesOf(all: readonly Named[]): (name: string) => string {
  const titles = new Map(all.map(({ name, title }) => [name, title]));
  return (name) => titles.get(name) ?? name;
}

/**
 * A sentence about the appliances of a connection, or about the connection if nobody uses it.
 * @param sentence about so many names
 */
export function sentenceAbout(
  { title, users }: Pick<PairedConnection, 'title' | 'users'>,
  texts: Texts,
  sentence: (names: string, count: number) => string,
): string {
  return users.length === 0
    ? sentence(texts.connection.title(title), 1)
    : sentence(joinTitles(users, texts), users.length);
}

/** Says that a shared login must be renewed. @param title of the connection @param users the titles of its appliances */
export function renewalText(title: string, users: readonly string[], texts: Texts): string {
  const { needsRenewal, needsRenewalFor } = texts.overview;
  return users.length === 0 ? needsRenewal(title) : needsRenewalFor(title, joinNames(users, texts));
}

/** A sentence that names a shared connection; empty if the sentence before has named it. */
export function connectionNote(paired: PairedConnection, { connection: texts }: Texts): string {
  return paired.own || paired.users.length === 0 ? '' : texts.about(paired.title);
}

/** The page that shows a connection: its own, or that of the appliance whose own connection it is. */
export function pagePathOf({ connection, own }: Pick<PairedConnection, 'connection' | 'own'>): string {
  return own ? appliancePath(connection) : connectionPath(connection);
}
