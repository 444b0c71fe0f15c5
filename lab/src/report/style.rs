//! The looks of charts and page, for light and dark.

/// Colours, as variables. The reader's system says whether it is dark.
///
/// Published is grey, simulated kernels blue, barewire orange, everywhere. The fills of steps, `f0` to `f24`, carry dark
/// text in both. The first nine and the lines are told apart without colour vision too (Paul Tol, *Colour schemes*,
/// SRON/EPS/TN/09-002, 2021: "light" and "high-contrast"); `f12` to `f23` are darker sisters of `f0` to `f11`, for the
/// shorter steps; `f24` is for all others.
pub const COLOURS: &str = "\
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2127;--dim:#5c6672;--rule:#dde2e7;--soft:#f5f7f9;\
--published:#a3adb8;--replayed:#2f6fb5;--barewire:#e08a2c;\
--s0:#2f6fb5;--s1:#c8553d;--s2:#22885a;--s3:#8a4fa8;--s4:#a67c00;--s5:#3b97a8}\
@media(prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e6eaee;--dim:#9aa5b1;--rule:#303841;--soft:#1b2127;\
--published:#77828e;--replayed:#5b9ee6;--barewire:#f0a04b;\
--s0:#6aaaf0;--s1:#f08a70;--s2:#55c492;--s3:#c494e0;--s4:#d9b341;--s5:#6cc6d6}}\n";

/// Charts.
pub const CHARTS: &str = "\
.chart text{font:11px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--ink);paint-order:stroke;stroke:var(--paper);stroke-width:2.5px}\
.chart text.head{font-size:12px;font-weight:600}.chart text.dim{fill:var(--dim)}\
.chart text.on{fill:#15181c;stroke:none;pointer-events:none}.chart .paper{fill:var(--paper)}\
.published{fill:var(--published)}.replayed{fill:var(--replayed)}.barewire{fill:var(--barewire)}\
.whisker{stroke:var(--ink);stroke-width:1;stroke-opacity:.75}\
.axis{stroke:var(--dim);stroke-width:1}.grid{stroke:var(--rule);stroke-width:1}\
.cross{stroke:var(--ink);stroke-width:1;stroke-dasharray:4 3}\
.step{stroke:var(--paper);stroke-width:.7}\
.f0{fill:#7ad}.f1{fill:#e86}.f2{fill:#4b9}.f3{fill:#ed8}.f4{fill:#fab}.f5{fill:#9df}.f6{fill:#bc3}.f7{fill:#c9a3e0}\
.f8{fill:#d2a679}.f9{fill:#94a4ee}.f10{fill:#9ed6a8}.f11{fill:#e59bbd}\
.f12{fill:#6090bd}.f13{fill:#c9785c}.f14{fill:#389c7e}.f15{fill:#c9b464}.f16{fill:#d98a9b}.f17{fill:#74bcdc}\
.f18{fill:#98a42a}.f19{fill:#a882bf}.f20{fill:#ae885e}.f21{fill:#7787cc}.f22{fill:#7db389}.f23{fill:#c27a9b}\
.f24{fill:#c8ccd0}\
.series{fill:none;stroke-width:2;stroke-linejoin:round}\
.l0{stroke:var(--s0)}.l1{stroke:var(--s1)}.l2{stroke:var(--s2)}.l3{stroke:var(--s3)}.l4{stroke:var(--s4)}\
.l5{stroke:var(--s5)}\
.chart text.t0{fill:var(--s0)}.chart text.t1{fill:var(--s1)}.chart text.t2{fill:var(--s2)}\
.chart text.t3{fill:var(--s3)}.chart text.t4{fill:var(--s4)}.chart text.t5{fill:var(--s5)}\n";

/// The page.
pub const PAGE: &str = "\
body{margin:0 auto;max-width:1120px;padding:32px 20px 80px;background:var(--paper);color:var(--ink);\
font:15px/1.55 system-ui,-apple-system,'Segoe UI',sans-serif}\
h1{font-size:28px;margin:0 0 4px}h2{font-size:20px;margin:56px 0 4px;padding-top:12px;border-top:1px solid var(--rule)}\
.worth{font-size:18px;margin:10px 0}h3{font-size:15px;margin:28px 0 6px}p{max-width:76ch;margin:6px 0}.dim,figcaption,caption{color:var(--dim)}\
a{color:var(--replayed)}nav a{margin-right:14px;white-space:nowrap}\
figure{margin:14px 0;overflow-x:auto}figure .chart{min-width:680px}figcaption{font-size:13px;max-width:90ch}.chart{max-width:100%;height:auto;display:block}\
.multiples{columns:3 300px;column-gap:28px}.multiples div{break-inside:avoid;padding-bottom:16px}\
.key{font-size:13px;margin:8px 0 12px}.key i{display:inline-block;width:12px;height:12px;margin:0 5px -1px 14px;\
border-radius:2px}.key i:first-child{margin-left:0}i.published{background:var(--published)}\
i.replayed{background:var(--replayed)}i.barewire{background:var(--barewire)}\
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}\
caption{text-align:left;padding:4px 0}th,td{padding:3px 14px 3px 0;text-align:left;border-bottom:1px solid var(--rule);\
vertical-align:top}thead th{color:var(--dim);font-weight:600}td.n,th.n{text-align:right}tbody th{font-weight:500;white-space:nowrap}\
details{margin:14px 0}summary{cursor:pointer;color:var(--replayed)}\
ul{padding-left:20px;max-width:90ch}li{margin:3px 0}code{font-size:.92em}\n";
