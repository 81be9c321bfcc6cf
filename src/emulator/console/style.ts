/** The console's style sheet. */
export const STYLE = `:root{color-scheme:light dark;font:1rem/1.45 system-ui,sans-serif;
--page:#f3f0fa;--card:#fff;--text:#1d1b26;--quiet:#5d586b;--line:#857f94;--soft:#eeebf7;--main:#4b3fbb;--on-main:#fff;
--good:#0f6b33;--good-soft:#e2f5e8;--go:#0a5299;--go-soft:#e1effd;--warn:#854500;--warn-soft:#fdeedd;--bad:#b3261e;--bad-soft:#fce8e6;
--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media(prefers-color-scheme:dark){:root{--page:#14121b;--card:#201d2a;--text:#efedf5;--quiet:#b3adc2;--line:#837d93;--soft:#2c2839;
--main:#b9b0ff;--on-main:#1c1640;--good:#86dfa0;--good-soft:#173322;--go:#93c4ff;--go-soft:#17304a;--warn:#ffc07d;--warn-soft:#3d2a12;
--bad:#ff9a91;--bad-soft:#451f1c}}
*{box-sizing:border-box}
[hidden]{display:none!important}
html{scroll-padding-top:7rem}
body{margin:0;background:var(--page);color:var(--text)}
header{position:sticky;top:0;z-index:1;display:flex;align-items:center;gap:.25rem 1.25rem;flex-wrap:wrap;min-height:3.75rem;
padding:.25rem max(1.25rem,50% - 40.75rem);background:var(--card);border-bottom:1px solid var(--soft)}
h1{font-size:1.15rem;margin:0}
h2{font-size:1.05rem;line-height:1.3;margin:0 0 .5rem}
h2:focus{outline:none}
p{margin:.5rem 0}
#live{margin:0;padding:.1rem .7rem;border-radius:1rem;font-size:.875rem;background:var(--soft);color:var(--quiet)}
#live::before{content:"";display:inline-block;width:.55rem;height:.55rem;margin-right:.4rem;border-radius:50%;background:currentcolor}
#live.on{background:var(--good-soft);color:var(--good)}
#live.off{background:var(--bad-soft);color:var(--bad)}
.time{margin:0 0 0 auto;font-size:.9rem;color:var(--quiet);font-variant-numeric:tabular-nums;animation:tick 1s steps(1) infinite}
@keyframes tick{to{outline-color:transparent}}
main{max-width:84rem;margin:0 auto;padding:0 1.25rem;display:grid;grid-template-columns:minmax(0,1.35fr) minmax(0,1fr);gap:1.25rem;padding-top:1.25rem;padding-bottom:5rem;align-items:start}
nav{grid-column:1/-1;display:flex;flex-wrap:wrap;gap:0 1.25rem}
nav a{display:flex;align-items:center;min-height:2.75rem;color:var(--main)}
.column{display:grid;gap:1.25rem;grid-template-columns:minmax(0,1fr)}
section{background:var(--card);border:1px solid var(--soft);border-radius:.9rem;padding:1rem 1.25rem}
#requests h2{float:left;line-height:2.75rem;margin:0 1rem 0 0}
#requests .inline{display:flex;justify-content:flex-end;margin-bottom:.5rem}
#requests .empty{clear:both}
.list{list-style:none;margin:0;padding:0}
.list>li{border-top:1px solid var(--soft);padding:.5rem 0}
.empty,.quiet{color:var(--quiet)}
.empty{margin:.25rem 0}
label{display:block;font-size:.9rem}
label span{display:block;margin-bottom:.2rem;color:var(--quiet)}
.inline{display:flex;align-items:center;gap:.5rem}
.inline span{margin:0}
input,select,textarea,button{font:inherit;color:inherit;min-height:2.75rem;padding:.4rem .75rem;border:1px solid var(--line);border-radius:.5rem;background:var(--card);max-width:100%}
input,select,textarea{width:100%;font-size:1rem}
textarea{display:block;min-height:4rem;resize:vertical;font-family:var(--mono)}
.inline select{width:auto;min-width:0}
button{cursor:pointer;font-weight:500}
button:hover{background:var(--soft)}
button.main{background:var(--main);border-color:var(--main);color:var(--on-main)}
button.danger{border-color:var(--bad);color:var(--bad)}
:focus-visible{outline:3px solid var(--main);outline-offset:2px}
.buttons{display:flex;flex-wrap:wrap;gap:.5rem;margin:.5rem 0}
.facts{margin:.25rem 0;font-size:.9rem}
.facts div{display:flex;gap:.25rem 1rem;padding:.2rem 0;flex-wrap:wrap}
.facts dt{color:var(--quiet);min-width:9rem}
.facts dd{margin:0;min-width:0;overflow-wrap:anywhere}
.value{font-family:var(--mono);font-size:.875rem;user-select:all}
#requests .list>li{padding:0}
summary{display:flex;align-items:center;gap:.1rem .9rem;min-height:2.75rem;padding:.35rem .25rem;cursor:pointer;font-size:.95rem;list-style:none;border-radius:.4rem}
summary::-webkit-details-marker{display:none}
summary::before{content:"›";flex:none;width:.6rem;color:var(--quiet);font-weight:700}
[open]>summary::before{transform:rotate(90deg)}
summary:hover{background:var(--soft)}
summary time{font-variant-numeric:tabular-nums;font-size:.9rem}
.what{font-family:var(--mono);font-size:.9rem;font-weight:600;white-space:nowrap}
.about{flex:1;min-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;font-size:.9rem}
details .facts{margin:0 0 .75rem;padding:.5rem .75rem;border-radius:.5rem;background:var(--soft)}
.status{flex:none;margin-left:auto;padding:.1rem .6rem;border-radius:1rem;font-size:.875rem;font-weight:600;white-space:nowrap;background:var(--soft);color:var(--quiet)}
.s2{background:var(--good-soft);color:var(--good)}
.s3{background:var(--go-soft);color:var(--go)}
.s4{background:var(--warn-soft);color:var(--warn)}
.s5,.s0{background:var(--bad-soft);color:var(--bad)}
#settings{grid-column:1/-1}
#settings form{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,30rem),1fr));gap:0 2rem}
.setting{display:grid;grid-template-columns:minmax(0,1fr) 11.5rem;align-items:center;gap:.25rem 1rem;padding:.3rem 0;border-top:1px solid var(--soft)}
.setting span{margin:0;color:var(--text);font-size:.95rem;overflow-wrap:anywhere}
small{display:block;font-size:.875rem;color:var(--quiet)}
::placeholder{color:var(--quiet);opacity:1}
.row{display:flex;flex-wrap:wrap;align-items:baseline;gap:.1rem .75rem;margin:.25rem 0}
.row .status{margin-left:0}
h3{font-size:.95rem;margin:1rem 0 .5rem}
#add-fault{display:grid;gap:.75rem}
.entry{display:flex;justify-content:space-between;align-items:center;gap:.5rem 1rem;flex-wrap:wrap}
.entry>div:first-child{flex:1 1 12rem;min-width:0;overflow-wrap:anywhere}
.entry p{margin:.1rem 0;font-size:.9rem}
#clock form{display:flex;gap:.5rem;align-items:end}
#clock form label{flex:1}
.now{font-variant-numeric:tabular-nums;font-size:1.15rem;font-weight:600}
#notice{position:fixed;z-index:2;left:50%;bottom:1rem;transform:translateX(-50%);margin:0;display:flex;align-items:center;gap:1rem;
width:max-content;max-width:calc(100vw - 2rem);padding:.25rem .25rem .25rem 1rem;border-radius:.7rem;border:1px solid var(--line);background:var(--card);overflow-wrap:anywhere}
#notice.good{border-color:var(--good);animation:leave .4s 6s forwards}
#notice.bad{border-color:var(--bad)}
#notice button{border:0;min-width:2.75rem}
@keyframes leave{to{opacity:0}}
dialog{max-width:28rem;border:1px solid var(--line);border-radius:1rem;padding:1.25rem 1.5rem;background:var(--card);color:var(--text)}
dialog::backdrop{background:#0009}
dialog .buttons{justify-content:flex-end}
@media(max-width:60rem){main{grid-template-columns:minmax(0,1fr);padding:.75rem .75rem 5rem;gap:.75rem}.column{gap:.75rem}
header{padding:.25rem 1rem}section{padding:.9rem}}
@media(max-width:34rem){html{scroll-padding-top:6.5rem}summary{flex-wrap:wrap;padding:.4rem .25rem}.what{flex:1 1 50%}.about{flex:1 1 40%;padding-left:1.5rem;white-space:normal}
.time{margin:0;flex-basis:100%;order:1}#reset{margin-left:auto}.setting{grid-template-columns:minmax(0,1fr) 9rem}}
`;
