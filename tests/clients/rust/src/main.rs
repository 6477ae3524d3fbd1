//! Zizq's Rust client at work on a server. Prints what it saw as one JSON object.
//!
//! Arguments: what to do, the server's URL, and the CA of its certificate where it has one.

use std::error::Error;
use std::time::Duration;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use zizq::{
    BatchConfig, BudgetBindingInput, BudgetPatch, BudgetPolicy, BudgetStrategy, Client, CronEntry,
    Format, JobKind, JobPatch, JobStatus, UniqueKey, UniqueScope,
};

type Seen = Result<Value, Box<dyn Error>>;

#[derive(Serialize, Deserialize, JobKind)]
#[zizq(name = "greet", queue = "mail")]
struct Greet {
    name: String,
}

#[derive(Serialize, Deserialize, JobKind)]
#[zizq(name = "push", queue = "push")]
struct Push {
    devices: Vec<u32>,
}

fn greet(name: &str) -> Greet {
    Greet { name: name.into() }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let mut seen = serde_json::Map::new();
    for (name, format) in [("msgpack", Format::MessagePack), ("json", Format::Json)] {
        let mut builder = Client::builder().url(arguments[2].as_str()).format(format);
        if let Some(file) = arguments.get(3) {
            builder = builder.ca_certificate(std::fs::read(file)?);
        }
        let client = builder.build()?;
        let what = match arguments[1].as_str() {
            "work" => work(&client).await?,
            "unique" => unique(&client).await?,
            "batch" => batch(&client).await?,
            "cron" => cron(&client).await?,
            "budgets" => budgets(&client).await?,
            other => return Err(format!("nobody knows how to {other}").into()),
        };
        client.reset().await?;
        seen.insert(name.into(), what);
    }
    println!("{}", Value::Object(seen));
    Ok(())
}

/// Enqueue, in bulk, take, acknowledge, fail, query, patch, delete.
async fn work(client: &Client) -> Seen {
    client.health().await?;
    let first = client.enqueue(greet("Ann")).priority(3).retry_limit(2).await?;
    let bulk = client
        .enqueue_bulk()
        .add(client.enqueue(greet("Bob")).priority(1))
        .add(client.enqueue(greet("Cid")).priority(2))
        .add(client.enqueue(greet("Dan")).delay(Duration::from_secs(3600)))
        .await?;
    let mut stream = client.take().queues(["mail"]).prefetch(3).await?;
    let mut taken = Vec::new();
    for _ in 0..3 {
        let job = stream.next().await.ok_or("the stream ended")??;
        taken.push((job.id.clone(), job.payload.unwrap_or_default()["name"].clone()));
    }
    client.report_success(&taken[0].0).await?;
    client.report_success_bulk([&taken[1].0]).await?;
    let failed = client
        .report_failure(&first.id, "no such address")
        .error_type("Bounced")
        .retry_in(Duration::from_secs(3600))
        .await?;
    let error = client.get_error(&first.id, 1).await?;
    let listed = client.list_jobs().queue(["mail"]).await?;
    let matching = client.count_jobs().filter(".name == \"Dan\"").await?;
    let moved = client.patch_job(&bulk[2].id, JobPatch::new().queue("post").priority(9)).await?;
    let patched = client.patch_all_jobs().queue(["mail"]).patch(JobPatch::new().priority(7)).await?;
    let queues = client.list_queues().await?;
    client.delete_job(&first.id).await?;
    let deleted = client.delete_all_jobs().queue(["post"]).await?;
    Ok(json!({
        "order": taken.iter().map(|(_, name)| name).collect::<Vec<_>>(),
        "scheduled": bulk[2].status == JobStatus::Scheduled,
        "attempts": failed.attempts,
        "error": [error.message, error.error_type.unwrap_or_default()],
        "listed": listed.jobs.len(),
        "matching": matching,
        "moved": [moved.queue, moved.priority.to_string()],
        "patched": patched,
        "queues": queues,
        "deleted": deleted,
        "left": client.count_jobs().await?,
        "unknown": client.get_job(&first.id).await.is_err(),
    }))
}

async fn unique(client: &Client) -> Seen {
    let key = || UniqueKey::raw("ann").scope(UniqueScope::Active);
    let first = client.enqueue(greet("Ann")).unique_key(key()).await?;
    let second = client.enqueue(greet("Anna")).unique_key(key()).await?;
    Ok(json!({
        "duplicates": [first.duplicate, second.duplicate],
        "same": first.id == second.id,
        "scope": first.unique_key.and_then(|key| key.scope) == Some(UniqueScope::Active),
    }))
}

async fn batch(client: &Client) -> Seen {
    let mut folded = Vec::new();
    let mut ids = Vec::new();
    for device in 1..=4 {
        let config = BatchConfig::at(".devices", 3).keyed_by("apple");
        let job = client.enqueue(Push { devices: vec![device] }).batch(config).await?;
        folded.push(job.folded);
        ids.push(job.id);
    }
    let host = client.get_job(&ids[0]).await?;
    Ok(json!({
        "folded": folded,
        "hosts": [ids[0] == ids[1], ids[1] == ids[2], ids[2] == ids[3]],
        "payload": host.payload,
    }))
}

async fn cron(client: &Client) -> Seen {
    let entry = |name: &str| CronEntry::new(name, "0 3 * * *", client.enqueue(greet("Ann")));
    let group = client
        .replace_cron("nightly")
        .timezone("Europe/Berlin")
        .entry(entry("first"))
        .await?;
    let added = client.add_cron_entry("nightly", entry("second").timezone("UTC")).await?;
    client.pause_cron_entry("nightly", "second").await?;
    client.pause_cron("nightly").await?;
    let read = client.get_cron("nightly").await?;
    client.delete_cron_entry("nightly", "first").await?;
    Ok(json!({
        "crons": client.list_crons().await?,
        "timezones": [group.timezone, added.timezone],
        "due": added.next_enqueue_at.is_some(),
        "paused": [read.paused, read.entries[0].paused, read.entries[1].paused],
        "left": client.get_cron("nightly").await?.entries.len(),
        "deleted": client.delete_all_crons().await?,
    }))
}

async fn budgets(client: &Client) -> Seen {
    let one = BudgetPolicy { allocation: 1, strategy: BudgetStrategy::WhileInFlight };
    let made = client.create_budget("printer", one).await?;
    let mut ids = Vec::new();
    for name in ["Ann", "Bob"] {
        ids.push(client.enqueue(greet(name)).budget("printer").await?.id);
    }
    let mut stream = client.take().queues(["mail"]).prefetch(2).await?;
    let first = stream.next().await.ok_or("the stream ended")??;
    let waiting = client.get_job(&ids[1]).await?.status == JobStatus::Ready;
    client.report_success(&first.id).await?;
    let second = stream.next().await.ok_or("the stream ended")??;
    client.report_success(&second.id).await?;
    let wider = client.update_budget("printer", BudgetPatch::new().allocation(2)).await?;
    let binding = BudgetBindingInput::new("printer").cost(2);
    let bound = client.enqueue(greet("Cid")).queue("post").budget(binding).await?;
    let costs: Vec<u32> = bound.budgets.iter().map(|binding| binding.cost).collect();
    let in_use = client.delete_budget("printer").await.is_err();
    client.unbind_all_budgets(&bound.id).await?;
    client.delete_budget("printer").await?;
    Ok(json!({
        "made": made.allocation,
        "order": [first.id == ids[0], waiting, second.id == ids[1]],
        "wider": wider.allocation,
        "costs": costs,
        "in_use": in_use,
        "left": client.list_budgets().await?.len(),
    }))
}
