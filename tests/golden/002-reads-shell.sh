#!/bin/sh
# What 002-reads-shell.db is a log of. Run it in a folder that has docs/examples, such as /srv/demo,
# then freeze the store: python -m tests.golden.record STORE 002-reads-shell
set -eu
export STATELOG_STORE=reads-shell.db READS="$PWD/docs/examples/reads-qc/data"
plan_of() { statelog session show "$1" --json | sed 's/.*"selectedPlanId": "\([^"]*\)".*/\1/'; }

statelog --actor bob workflow import docs/examples/reads-shell/workflow.yaml \
    --resources docs/examples/reads-shell/environment.yaml
scope=reads-shell-v1-on-this-machine-v1-scope

# three algorithms, a choice, and another one
statelog --actor bob session create --id reads --workflow reads-shell-v1 --scope "$scope" \
    --algorithm heft --algorithm min-min --algorithm moheft --wait
statelog --actor bob session select reads 1
statelog --actor alice session select reads 2
plan=$(plan_of reads)

# sessions that are called off, before and after somebody began
statelog --actor bob session create --id unwanted --workflow reads-shell-v1 --scope "$scope" \
    --algorithm heft
statelog --actor bob session cancel unwanted
statelog --actor bob worker --once

# simulated, real, failed for real, and repeated with what was completed
statelog --actor bob execution submit --plan "$plan" --run-id try-1 --seed 7 --wait
statelog --actor bob execution submit --plan "$plan" --mode real --run-id reads-1 --wait
! READS=/srv/nowhere statelog --actor bob execution submit --plan "$plan" --mode real \
    --run-id reads-2 --wait
statelog --actor bob execution recover reads-2 reads-3 --wait
mkdir fewer
cp "$READS/R1.fq.gz" fewer/R1.fq.gz
gzip -dc "$READS/R2.fq.gz" | head -n 400 | gzip > fewer/R2.fq.gz
! READS="$PWD/fewer" statelog --actor bob execution submit --plan "$plan" --mode real \
    --run-id reads-4 --wait
statelog --actor bob execution recover reads-4 reads-5 --wait \
    --reuse r1-unpack --reuse r1-count --reuse r1-lengths --reuse r1-checksum

# a run that somebody interrupts
cat > slow.yaml <<'YAML'
name: slow
spec:
  namespace: examples
  activities:
  - {name: waits, run: sleep 60}
  - {name: after, run: "true", dependsOn: [waits]}
YAML
statelog --actor bob workflow import slow.yaml \
    --resources docs/examples/reads-shell/environment.yaml
statelog --actor bob session create --id slow --workflow slow-v1 \
    --scope slow-v1-on-this-machine-v1-scope --algorithm heft --wait
statelog --actor bob session select slow 1
statelog --actor bob execution submit --plan "$(plan_of slow)" --mode real --run-id slow-1
statelog --actor bob worker --once &
worker=$!
until statelog execution show slow-1 --json 2>/dev/null | grep -q '"running"'; do sleep 0.2; done
sleep 1
statelog --actor alice execution interrupt slow-1 waits
wait "$worker" || true

# a worker that is killed; another one takes its run over
statelog --actor bob execution submit --plan "$(plan_of slow)" --mode real --run-id slow-2
statelog --actor bob worker --once --lease 1 &
worker=$!
until statelog execution show slow-2 --json 2>/dev/null | grep -q '"running"'; do sleep 0.2; done
kill -9 "$worker"
wait "$worker" || true
sleep 2
statelog --actor alice worker --once --lease 5 &
worker=$!
sleep 3
statelog --actor alice execution interrupt slow-2 waits
wait "$worker" || true

statelog execution list
statelog log audit
statelog views verify
