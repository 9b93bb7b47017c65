"""axe.top_k beside torch.topk, torch.max and a copy: python3 top_k.py, in a folder of packages p_ROWSxCOLUMNS_K_DTYPE[_tag], each of a function
that is one axe.top_k with indices of i64. Every result is compared with torch's stable sort; rows in ascending order and of equal elements are timed too."""
import glob, statistics as st, torch
from cubin import DT, Package
def timed(f, n=8, rounds=3):
    f(); out=[]
    for _ in range(rounds):
        a,b=torch.cuda.Event(True),torch.cuda.Event(True); a.record()
        for _ in range(n): f()
        b.record(); torch.cuda.synchronize(); out.append(a.elapsed_time(b)/n*1e3)
    return out
print("torch", torch.__version__, torch.cuda.get_device_name())
groups={}
for p in sorted(glob.glob('p_*')): groups.setdefault('_'.join(p.split('_')[1:4]),[]).append(p)
for shape,ps in groups.items():
    rn,k,dt=shape.split('_'); r,n=map(int,rn.split('x')); k=int(k); dtype=DT[dt][1]
    torch.manual_seed(1); x=torch.randn(r,n,device='cuda').to(dtype)
    y=torch.empty_like(x); c=st.median(timed(lambda: y.copy_(x))); del y
    t=st.median(timed(lambda: torch.topk(x,k)))
    m=st.median(timed(lambda: torch.max(x,-1)))
    print(f"{shape}: copy {c:.1f} us ({2*x.nbytes/c/1e6:.2f} TB/s), torch.topk {t:.1f} us, torch.max {m:.1f} us", flush=True)
    some=x[::max(1,r//64)][:64].clone(); order=torch.sort(some,stable=True,dim=-1,descending=True); wv,wi=order.values[:,:k],order.indices[:,:k]
    for p in ps:
        P=Package(p); v=torch.full((r,k),77,device='cuda',dtype=dtype); i=torch.full((r,k),-7,device='cuda',dtype=torch.int64)
        run=P.bind({P.m['inputs'][0]['name']:x,P.m['outputs'][0]['name']:v,P.m['outputs'][1]['name']:i}); run(); torch.cuda.synchronize()
        ok=bool((v[::max(1,r//64)][:64]==wv).all() and (i[::max(1,r//64)][:64]==wi).all() and (i>=0).all() and (x.gather(1,i.clamp(0,n-1))==v).all() and (v[:,1:]<=v[:,:-1]).all())
        a=st.median(timed(run)); line=f"  {p:32s} {a:7.1f} us  {x.nbytes/a/1e6:.2f} TB/s read, {t/a:.1f} x torch.topk {'ok' if ok else 'WRONG'}"
        z=x.clone()
        for what in (("ascending","equal") if p.count('_') == 3 else ()):
            if what=="ascending": x.copy_(torch.sort(x,-1).values)
            else: x.fill_(1.5)
            run(); torch.cuda.synchronize(); b=st.median(timed(run)); line+=f", {what} {b:.1f}"
            if what=="equal": line+=" ok" if bool((i==torch.arange(k,device='cuda')).all()) else " WRONG"
        x.copy_(z); del z
        print(line, flush=True)
    del x
