import type { adding as english } from '../en/adding.ts';

export const adding: typeof english = {
  title: 'Gerät hinzufügen',
  name: 'Name',
  nameHint: 'Kleinbuchstaben a–z, Ziffern und „-“, etwa „wallbox“ oder „waermepumpe-2“; höchstens 63.',
  scope: 'Zugang (Scope)',
  scopeHint:
    'Was es beim Portal anfragen soll, wie im Handbuch angegeben, etwa „Monitoring RemoteControl“. Darf leer bleiben.',
  portal: 'Portal',
  add: 'Hinzufügen',
  nameMissing: 'Bitte einen Namen eingeben.',
  nameWrong:
    'Das kann kein Name sein. Erlaubt sind Kleinbuchstaben a–z, Ziffern und „-“, am Anfang ein Buchstabe oder eine Ziffer; höchstens 63.',
  nameTaken: 'Ein Gerät mit diesem Namen gibt es schon. Bitte einen anderen wählen.',
  scopeWrong:
    'Hier steht ein Zeichen, das nicht vorkommen kann, oder es ist zu lang. Bitte Namen mit Leerzeichen dazwischen eingeben, ohne Anführungszeichen und Umlaute.',
  portalWrong: 'Dieses Portal gibt es in der Konfiguration des Hubs nicht.',
  credentials: {
    title: (appliance) => `Zugangsdaten von ${appliance}`,
    added: (appliance) => `${appliance} ist hinzugefügt.`,
    rotated: (appliance) => `${appliance} hat ein neues Geheimnis. Das alte gilt nicht mehr.`,
    keep: 'Diese Angaben jetzt am Gerät eintragen. Das Geheimnis wird nur dieses eine Mal gezeigt: Der Hub behält keine Kopie. Die Seite lässt sich zehn Minuten lang neu laden, außer nach „Fertig“.',
    clientId: 'Client-ID',
    clientSecret: 'Client-Geheimnis',
    tokenEndpoint: 'Token-Endpunkt',
    pin: 'Fingerabdruck der Zertifizierungsstelle des Hubs',
    qr: 'Alles zusammen als QR-Code',
    qrHint:
      'Für Geräte mit Kamera oder eine App, die sie einrichtet. Er enthält das Geheimnis: bitte sonst niemandem zeigen.',
    connectNext: (appliance) => `${appliance} jetzt verbinden`,
    done: 'Fertig',
    gone: 'Diese Zugangsdaten werden nicht mehr gezeigt',
    goneText:
      'Sie sind zehn Minuten lang zu sehen, und nicht mehr nach „Fertig“ oder dem Abmelden. Sind sie verloren, auf der Seite des Geräts ein neues Geheimnis geben.',
  },
};
