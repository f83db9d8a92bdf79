import sys, time, jax, numpy as np, warnings
jax.config.update("jax_enable_x64", sys.argv[1]=="64")
jax.config.update("jax_numpy_rank_promotion","allow"); jax.config.update("jax_numpy_dtype_promotion","standard")
warnings.simplefilter("ignore")
from tests.hunt import runs, pit
from tests.hunt.families import CONTINUOUS, DISCRETE
names = sys.argv[2:] or [*CONTINUOUS,*DISCRETE]
for name in names:
    t=time.time()
    fam=runs.family_of(name); disc=name in DISCRETE
    try: r=runs.run(name)
    except Exception as e:
        print(name,"ERROR",type(e).__name__,str(e)[:150]); continue
    pts=fam.at(); out=[]
    for k,p in enumerate(pts):
        o=fam.oracle(*p); nxt=fam.oracle(*pts[(k+1)%len(pts)])
        lp = (o.logpmf if disc else o.logpdf)(np.asarray(r.values[k],np.float64))
        fin=np.isfinite(lp)
        dd=np.abs(r.density[k]-lp)/(1+np.abs(lp)); dd=np.where(np.isfinite(dd),dd,np.where(fin,np.inf,0))
        cent=r.words=="centred"
        rt = np.mean(r.again[k]!=r.values[k]) if disc else np.nan_to_num(np.abs(pit.scores(o,r.again[k])-pit.scores(o,r.values[k])),nan=99).max()
        tilt=r.tilt[k]; 
        pv=pit.p_value(o,r.values[k],disc); pd=pit.p_value(o,r.draws[k],disc); pm=1.0 if (cent or not (r.free or disc)) else pit.p_value(nxt,r.moved[k],disc)
        bad=[]
        if pv<1e-4: bad.append(f"oracle p={pv:.0e}")
        if pd<1e-4: bad.append(f"draws p={pd:.0e}")
        if pm<1e-4: bad.append(f"moved p={pm:.0e}")
        if not dd.max()<(1e-6 if sys.argv[1]=="64" else 2e-3): bad.append(f"density {dd.max():.1e} ({np.sum(~(dd<1e-3))} of)")
        if not rt<(1e-5 if sys.argv[1]=="64" else 1e-2): bad.append(f"roundtrip {rt:.1e}")
        if not np.isfinite(tilt).all() or np.abs(tilt-np.median(r.tilt[0])).max()>(1e-5 if sys.argv[1]=="64" else 1e-2): bad.append(f"tilt {np.abs(tilt-np.median(r.tilt[0])).max():.1e}")
        if bad: out.append((p,bad))
    print(f"{name}: {r.words} free={r.free} {time.time()-t:.1f}s", "OK" if not out else "", flush=True)
    for o in out: print("     ",*o)
