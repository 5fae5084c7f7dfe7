//! Connections to running servers.

use std::fs;
use std::process::Command;

use super::common::{run, say};
use super::harness::Gadgetron;

/// Starts servers in a separate network namespace, because Gadgetron listens on all networks.
const SERVERS: &str = r#"
ip link set lo up || exit 9
for port in 9101 9102; do
    gadgetron -p $port --disable_storage 1 -W w$port > server-$port.log 2>&1 &
    eval "server$port=$!"
done
export GADGETRON_REMOTE_WORKER_COMMAND='echo ["localhost:9101", "localhost:9102"]'
gadgetron -p 9100 --disable_storage 1 -W w9100 > server-9100.log 2>&1 &
server9100=$!
trap 'kill $server9100 $server9101 $server9102' EXIT
# The client loses a race if the server accepts its connection at once: it waits for ten seconds and ends. On a busy
# machine two of three clients did so.
send() {
    for attempt in $(seq 30); do
        rm -f $4
        timeout 60 gadgetron_ismrmrd_client -a 127.0.0.1 -p $1 -f $2 -C $3 -o $4 -G dataset \
            > client-$4.log 2>&1 && return
        sleep 0.5
    done
    echo "no client sent $2:"
    tail -3 client-$4.log
    exit 8
}
sleep 1
send 9101 one.h5 $CG first.h5 &
first=$!
send 9101 two.h5 $CG second.h5
wait $first
send 9101 lie.h5 $CG lied.h5
send 9101 one.h5 $CG after.h5
send 9100 slices.h5 $DISTRIBUTED distributed.h5
send 9102 slices.h5 $CG local.h5
kill -0 $server9100 && kill -0 $server9101 && kill -0 $server9102 && echo all alive
"#;

/// Tests two connections at once, an error between connections, and a distributed chain with two workers.
pub fn servers(g: &Gadgetron) {
    let has_namespaces =
        |c: &mut Command| c.args(["-rn", "sh", "-c", "ip link set lo up"]).output().is_ok_and(|o| o.status.success());
    if !has_namespaces(&mut Command::new("unshare")) {
        return say("skipped: connections to a real Gadgetron (no network namespaces: unshare -rn)");
    }
    g.alter("radial.h5", "one.h5", "repetitions 10");
    g.alter("spiral.h5", "two.h5", "repetitions 10");
    g.alter("spiral.h5", "slices.h5", "slices 6");
    g.alter("radial.h5", "lie.h5", "nan");
    let cg = g.chain("recon_cg.xml", &[]);
    let mut script = g.command("unshare");
    script.args(["-rn", "sh", "-c", SERVERS]).env("CG", &cg).env("DISTRIBUTED", g.chain("recon_distributed.xml", &[]));
    let text = run(&mut script);
    let log = |port: u32| fs::read_to_string(g.file(&format!("server-{port}.log"))).unwrap_or_default();
    assert!(text.contains("all alive"), "{text}\n{}", log(9101));
    for (input, images) in [("one.h5", "first.h5"), ("two.h5", "second.h5"), ("one.h5", "after.h5")] {
        let alone = g.stream(input, &cg, "alone.h5");
        g.assert_same(images, "alone.h5", 10, &(log(9101) + &alone));
    }
    assert!(log(9101).contains("sample 5: number 0 of its trajectory is NaN"), "{}", log(9101));
    // Both workers reconstruct some slices, and the images equal those of one server.
    g.assert_same("distributed.h5", "local.h5", 6, &(log(9100) + &log(9101) + &log(9102)));
    for port in [9101, 9102] {
        assert!(log(port).contains("slice 5") || log(port).contains("slice 4"), "{}", log(port));
    }
}
