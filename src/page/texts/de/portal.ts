import type * as english from '../en/portal.ts';

export const portal: typeof english.portal = {
  choose: 'Wählen Sie Ihr Portal',
  chooseText:
    'Ein Portal ist der Cloud-Dienst, bei dem die Geräte dieses Hauses ihr Konto haben. Der Hub meldet sich dort für sie an.',
  chooseAnother: 'Weiteres Portal hinzufügen',
  untried: 'Diese Portale kennt der Hub aus öffentlichen Quellen; keines davon ist erprobt.',
  helper: 'Ein Portal mit zwei Adressen',
  helperText: 'Sein Betreiber hat Ihnen zwei Web-Adressen, eine Client-ID und ein Client-Secret gegeben.',
  other: 'Ein anderes Portal',
  otherText: 'Jedes Portal mit OAuth 2.0, dessen Adresse (Issuer) Sie kennen.',
  manage: 'Ihre Portale',
  addHeading: (portal) => `${portal} hinzufügen`,
  againHeading: (portal) => `Daten neu eingeben: ${portal}`,
  nothingToRegister: 'Bei diesem Portal müssen Sie nichts registrieren.',
  registerHeading: 'Zuerst beim Portal',
  registerAt: 'Seite des Portals öffnen',
  redirect: 'Rückkehr-Adresse',
  redirectBelow: 'die Rückkehr-Adresse (unten)',
  redirectHint: 'Tragen Sie genau diese Adresse beim Portal als „Redirect URI“ ein.',
  redirectOwnHint:
    'Tragen Sie genau diese Adresse beim Portal als „Redirect URI“ ein. Nimmt das Portal sie nicht an, tragen Sie hier und dort eine andere ein, zum Beispiel die einer Relay-Seite: docs/relay.md von Latchkey beschreibt sie.',
  redirectPublicHint:
    'Eine öffentliche https-Adresse, denn andere nimmt dieses Portal nicht an: die einer Relay-Seite, die den Browser zum Hub zurückführt. docs/relay.md von Latchkey beschreibt, wie man sie auf einen beliebigen Webspace legt. Tragen Sie dieselbe Adresse beim Portal als „Redirect URI“ ein.',
  enterHeading: 'Dann hier',
  baseUrl: 'Erste Adresse (Base URL)',
  frontendUrl: 'Zweite Adresse (Frontend URL)',
  addressHint: 'Sie beginnt mit https und kommt vom Betreiber des Portals.',
  issuer: 'Adresse des Portals (Issuer)',
  address: 'Adresse',
  clientId: 'Client-ID',
  clientSecret: 'Client-Secret',
  secretHint: 'Der Hub speichert es verschlüsselt und zeigt es nie wieder.',
  secretOptionalHint:
    'Kann leer bleiben, wenn das Portal Ihnen keines gegeben hat. Der Hub speichert es verschlüsselt und zeigt es nie wieder.',
  secretKeptHint:
    'Bleibt das leer, behält der Hub das Client-Secret, das er hat, solange Sie hier sonst nichts ändern. Wenn doch, geben Sie es noch einmal ein.',
  variableHint: (description) => `Gebraucht wird: ${description}.`,
  add: 'Prüfen und hinzufügen',
  save: 'Prüfen und speichern',
  missing: 'Das fehlt.',
  secretAgain: 'Geben Sie es noch einmal ein: Ein eingetipptes Secret zeigt die Seite nicht wieder an.',
  invalid: 'Das ist nicht gültig. Vergleichen Sie es mit dem, was Sie vom Portal bekommen haben.',
  invalidUuid:
    'Das ist keine Client-ID eines solchen Portals. Sie hat 36 Zeichen, wie 0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90.',
  invalidAddress: {
    notHttps: 'Die Adresse muss mit „https://“ beginnen.',
    origin: 'Das ist nicht gültig. Nach dem Namen folgt in der Adresse nichts mehr, wie bei „https://portal.example“.',
    issuer: 'Das ist nicht gültig. Die Adresse hat die Form „https://id.example“, ohne „?“ und „#“.',
  },
  otherAddress: {
    origin:
      'Unter dieser Adresse antwortet das Portal nicht. Vergleichen Sie sie; vielleicht sind die beiden Adressen vertauscht. Es wurde nichts gespeichert.',
    issuer: 'Unter dieser Adresse antwortet das Portal nicht. Vergleichen Sie sie. Es wurde nichts gespeichert.',
  },
  rejected:
    'Das Portal nimmt diese Client-ID mit diesem Client-Secret nicht an. Vergleichen Sie beide. Es wurde nichts gespeichert.',
  rejectedWithoutSecret: 'Das Portal nimmt diese Client-ID nicht an. Vergleichen Sie sie. Es wurde nichts gespeichert.',
  rejectedPreset: 'Das Portal nimmt die Client-ID nicht an, die der Hub dafür hat. Es wurde nichts gespeichert.',
  starting: 'Der Hub startet mit dem neuen Portal',
  startingText: 'Das dauert einige Sekunden. Die Seite aktualisiert sich von selbst.',
  notStarted: 'Der Hub konnte mit diesem Portal nicht starten',
  added: (portal) => `${portal} ist hinzugefügt`,
  saved: (portal) => `${portal} ist gespeichert`,
  accepted: 'Das Portal nimmt den Hub an.',
  unreachable:
    'Das Portal war nicht erreichbar, deshalb wurden die Daten nicht geprüft. Prüfen Sie die Internetverbindung dieses Hauses und, falls Sie sie eingegeben haben, die Adresse des Portals.',
  unchecked: 'Das Portal war erreichbar. Ob es den Hub annimmt, zeigt erst die erste Anmeldung.',
  login: 'So melden Sie sich an',
  logins: {
    device: 'mit einem Code',
    redirect: 'mit einem Link',
    paste: 'mit einem Link; danach fügen Sie die Adresse ein, auf der der Browser endet',
    poll: 'mit einem Link',
  },
  loginUnknown: 'noch nicht bekannt, bis das Portal erreicht ist',
  declared:
    'Dieses Portal ist in der Konfigurationsdatei des Hubs eingetragen. Um es zu ändern oder zu entfernen, bearbeiten Sie diese Datei.',
  again: 'Neu eingeben',
  inUse: (logins) => `Genutzt von: ${logins}. Um dieses Portal zu entfernen, entfernen Sie das zuerst.`,
  removeHeading: (portal) => `${portal} entfernen?`,
  removeText: 'Der Hub löscht, was für dieses Portal eingegeben wurde.',
  failures: {
    portal_declared:
      'Dieses Portal ist in der Konfigurationsdatei des Hubs eingetragen und lässt sich nur dort ändern.',
    portal_exists: 'Jemand hat dieses Portal gerade hinzugefügt. Gehen Sie zurück, um es zu sehen.',
    portal_in_use: 'Geräte oder Anmeldungen nutzen dieses Portal noch. Entfernen Sie diese zuerst.',
    portal_unknown: 'Jemand hat dieses Portal entfernt.',
  },
};
