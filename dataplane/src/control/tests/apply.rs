//! `apply`: all of a profile or nothing of it.

use super::*;
use crate::shedding::Shedding;
use holdfast_api::doc::Source;
use holdfast_api::last_good::{sha256, LastGood};
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_core::units::BitRate;
use holdfast_plan::{PortFacts, SwitchFacts};

/// What the switch of a [`Desk`] plans with; it keeps profiles in `folder`/state.
pub(super) fn applying(ports: usize, folder: &Path) -> Applying {
    let port = |n| PortFacts {
        name: format!("p{n}"),
        speed: BitRate::gigabits(10),
        mtu: 1500,
        trust: None,
        link_pause: false,
    };
    let facts = SwitchFacts {
        ports: (0..ports).map(port).collect(),
        flood_limit: 256,
        rx_ring: 2048,
        spare_ports: 0,
    };
    let first = LastGood { text: "name = \"first\"\n".to_owned(), boot_file: sha256("first") };
    let keeper = Keeper::new(folder.join("state"), first);
    let document = ProfileDoc::load(&Source::new("first.toml", profile(1500))).unwrap();
    Applying { facts, document, keeper, shedding: Shedding::default() }
}

/// A profile that fits the switch, with this XOFF on PG 3.
pub(super) fn profile(xoff: u32) -> String {
    format!(
        "name = \"x{xoff}\"\n[buffer]\ntotal = \"auto\"\n\
         [[pool]]\nname = \"lossless\"\nsize = 6000\n[[pool]]\nname = \"lossy\"\nsize = 2000\n\
         [pg.3]\nheadroom = 2000\nalpha = 0\nxoff = {xoff}\nxon = 500\n"
    )
}

pub(super) fn call(profile: &str, dry_run: bool) -> Call {
    Call::Apply(Apply { profile: profile.to_owned(), file: Some("a.toml".to_owned()), dry_run })
}

fn in_force(client: &mut Client) -> ProfileReply {
    client.call(Call::ShowProfile(ShowProfile {})).unwrap()
}

#[test]
fn a_profile_takes_over_and_is_kept() {
    let desk = Desk::new(2, 2);
    let mut client = desk.client();
    let before = in_force(&mut client);
    let dry: ApplyReply = client.call(call(&profile(2000), true)).unwrap();
    let headroom = before.ports[0].pgs[3].headroom;
    let line = format!("ports.p0.pgs.3.headroom: {headroom} -> 2000");
    assert!(!dry.applied && dry.changed.contains(&line), "{line}: {:?}", dry.changed);
    assert_eq!(in_force(&mut client), before, "a dry run changes nothing");
    assert_eq!(LastGood::read(&desk.folder.path().join("state")).unwrap(), None);
    let applied: ApplyReply = client.call(call(&profile(2000), false)).unwrap();
    assert_eq!((applied.applied, applied.generation, &applied.not_kept), (true, 2, &None));
    assert_eq!((&applied.changed, &applied.sha256), (&dry.changed, &dry.sha256));
    let now = in_force(&mut client);
    assert_eq!((now.sha256, now.generation, now.total), (dry.sha256, 2, before.total));
    assert_eq!(now.ports[1].pgs[3].xoff, Some(2000));
    let kept = LastGood::read(&desk.folder.path().join("state")).unwrap().unwrap();
    assert_eq!((kept.text, kept.boot_file), (profile(2000), sha256("first")));
    // Once more: nothing to do, no new generation.
    let again: ApplyReply = client.call(call(&profile(2000), false)).unwrap();
    assert_eq!((again.generation, again.changed), (2, Vec::<String>::new()));
}

#[test]
fn whatever_is_wrong_nothing_changes() {
    let desk = Desk::new(1, 2);
    let mut client = desk.client();
    let before = in_force(&mut client);
    let with = |more: &str| format!("{}{more}", profile(2000));
    let restart = profile(2000).replace("\"auto\"", "16000");
    let wrong = [
        ("", "a.toml"),
        ("name = 3", "a.toml:1"),
        (&with("xof = 3\n"), "a.toml:15"),
        (&profile(5990), "a.toml:13: port.p0.pg.3.xoff"),
        (&with("[port.nobody.pg.3]\nxoff = 2100\n"), "port.nobody"),
        (&restart, "buffer.total"),
        (&profile(2000).replace("size = 6000", "size = 60000"), "a.toml:3: buffer.total"),
        (&with("cell_bytes = 80\n"), "a.toml"),
    ];
    for (text, place) in wrong {
        for dry_run in [true, false] {
            let answer = client.call::<ApplyReply>(call(text, dry_run));
            let Err(ClientError::Refused(error)) = answer else { panic!("{text}: {answer:?}") };
            let found = error.place.as_deref().unwrap_or_default();
            assert!(found.starts_with(place), "{found} for {place}: {error}");
        }
    }
    assert_eq!(in_force(&mut client), before);
    assert_eq!(LastGood::read(&desk.folder.path().join("state")).unwrap(), None);
}

/// A disk that can't keep it: the profile is in force, and the answer says what that means.
#[test]
fn what_cannot_be_kept_is_said() {
    let desk = Desk::new(1, 2);
    std::fs::write(desk.folder.path().join("state"), "no folder").unwrap();
    let applied: ApplyReply = desk.client().call(call(&profile(2000), false)).unwrap();
    assert!(applied.applied && applied.not_kept.is_some_and(|why| why.contains("state")));
    assert_eq!(in_force(&mut desk.client()).name, "x2000");
}

#[test]
fn the_formula_of_the_profile_in_force_holds_live_changes() {
    let desk = Desk::new(1, 2);
    let mut client = desk.client();
    let set = SetPg { pg: LOSSLESS, headroom: Some(CellAmount::Cells(20)), ..SetPg::default() };
    let formula = format!("{}[formula]\nkind = \"ac5p\"\nt_loop = \"3us\"\n", profile(2000));
    let _: ApplyReply = client.call(call(&formula, false)).unwrap();
    let body = refused(client.call::<SetReply>(Call::SetPg(set.clone())));
    assert_eq!(body.place.as_deref(), Some("port.p0.pg.3.headroom"));
    assert!(body.message.contains("ac5p"), "{body}");
    let _: ApplyReply = client.call(call(&profile(2100), false)).unwrap();
    let reply: SetReply = client.call(Call::SetPg(set)).unwrap();
    assert_eq!(reply.changed.len(), 2);
}
