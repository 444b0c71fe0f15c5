//! t
#[path = "bench/ops.rs"]
mod ops;
use ops::*;
use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    if a.len() > 2 {
        run(Op::from_name(&a[1]).unwrap(), a[2].parse().unwrap(), || ());
        return;
    }
    let mut all = vec![vec![]; 6];
    for _ in 0..400 {
        for (i, op) in Op::ALL.into_iter().enumerate() {
            let calls = 4000 / op.per_call();
            let (b, e): (Instant, Instant) = run(op, calls, Instant::now);
            all[i].push((e - b).as_nanos() as f64 / f64::from(calls * op.per_call()));
        }
    }
    for (i, op) in Op::ALL.into_iter().enumerate() {
        all[i].sort_by(f64::total_cmp);
        println!("{} {:.2} {:.2}", op.name(), all[i][200], all[i][0]);
    }
}
