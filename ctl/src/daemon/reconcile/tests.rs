use super::*;

fn file(text: &str) -> Result<ProfileFile, String> {
    Ok(ProfileFile { name: "lab.toml".to_owned(), text: text.to_owned() })
}

fn reply(sha256: &str, applied: bool) -> ApplyReply {
    ApplyReply {
        applied,
        generation: 2,
        name: "lab".to_owned(),
        sha256: sha256.to_owned(),
        changed: vec!["ports.h1.pgs.3.xoff: 4096 -> 5000".to_owned()],
        notes: Vec::new(),
        not_kept: None,
    }
}

fn error(code: ErrorCode) -> ErrorBody {
    ErrorBody::new(code, "XOFF is too high").at("port.h1.pg.3.xoff")
}

/// Whether the call is an apply of `text`: `Some(dry_run)`.
fn asks(call: Option<Call>, text: &str) -> Option<bool> {
    match call? {
        Call::Apply(apply) => {
            assert_eq!(apply.profile, text);
            assert_eq!(apply.file.as_deref(), Some("lab.toml"));
            Some(apply.dry_run)
        }
        other => panic!("{other:?}"),
    }
}

fn reconciler() -> (Reconciler, Instant) {
    let mut reconciler = Reconciler::new("lab.toml".into());
    reconciler.switch_is(7);
    (reconciler, Instant::now())
}

#[test]
fn a_profile_that_differs_is_checked_then_applied_once() {
    let (mut reconciler, now) = reconciler();
    assert_eq!(asks(reconciler.begin("old", file("a"), now), "a"), Some(true));
    assert_eq!(asks(reconciler.answered(Ok(reply("new", false)), now), "a"), Some(false));
    assert_eq!(reconciler.answered(Ok(reply("new", true)), now), None);
    assert_eq!((reconciler.tally().accepted, reconciler.tally().refused), (1, 0));
    assert_eq!(reconciler.tally().sha256.as_deref(), Some("new"));
    assert_eq!(reconciler.tally().text_sha256, Some(sha256("a")));
    // The next time it is in force, and that is all.
    assert_eq!(asks(reconciler.begin("new", file("a"), now), "a"), Some(true));
    assert_eq!(reconciler.answered(Ok(reply("new", false)), now), None);
    assert_eq!(reconciler.tally().accepted, 1);
    assert_eq!(reconciler.again_at(), None);
}

#[test]
fn a_refusal_is_kept_until_the_file_or_the_switch_is_another_one_or_somebody_asks() {
    let (mut reconciler, now) = reconciler();
    let refuse = |reconciler: &mut Reconciler, text: &str| {
        assert_eq!(asks(reconciler.begin("old", file(text), now), text), Some(true));
        assert_eq!(reconciler.answered(Err(error(ErrorCode::Refused)), now), None);
        assert_eq!(reconciler.begin("old", file(text), now), None, "not again");
        assert_eq!(reconciler.again_at(), None);
    };
    refuse(&mut reconciler, "a");
    assert_eq!(reconciler.tally().refused, 1);
    assert!(reconciler.tally().problem.as_ref().is_some_and(|text| text.contains("h1.pg.3.xoff")));
    reconciler.lost();
    assert_eq!(reconciler.begin("old", file("a"), now), None, "of the same switch");
    refuse(&mut reconciler, "b");
    reconciler.switch_is(8);
    refuse(&mut reconciler, "b");
    reconciler.forget_refusal();
    refuse(&mut reconciler, "b");
    assert_eq!(reconciler.tally().refused, 4);
    assert_eq!(reconciler.tally().accepted, 0);
    // Refused although the check was fine: the switch has changed meanwhile.
    assert_eq!(asks(reconciler.begin("old", file("c"), now), "c"), Some(true));
    assert_eq!(asks(reconciler.answered(Ok(reply("new", false)), now), "c"), Some(false));
    assert_eq!(reconciler.answered(Err(error(ErrorCode::Refused)), now), None);
    assert_eq!(reconciler.begin("old", file("c"), now), None);
}

#[test]
fn a_failure_that_is_no_refusal_is_tried_again_later() {
    for code in [ErrorCode::WorkerSilent, ErrorCode::Unavailable, ErrorCode::Silent] {
        let (mut reconciler, now) = reconciler();
        assert_eq!(asks(reconciler.begin("old", file("a"), now), "a"), Some(true));
        assert_eq!(reconciler.answered(Err(error(code)), now), None);
        assert_eq!(reconciler.again_at(), Some(now + TRY_AGAIN), "{code:?}");
        assert_eq!(reconciler.tally().refused, 0);
        assert_eq!(asks(reconciler.begin("old", file("a"), now), "a"), Some(true));
        assert_eq!(reconciler.again_at(), None);
    }
}

#[test]
fn what_is_under_way_ends_before_it_begins_anew() {
    let (mut reconciler, now) = reconciler();
    assert_eq!(asks(reconciler.begin("old", file("a"), now), "a"), Some(true));
    assert_eq!(reconciler.begin("old", file("b"), now), None);
    assert_eq!(reconciler.again_at(), Some(now + SOON));
    assert_eq!(asks(reconciler.answered(Ok(reply("new", false)), now), "a"), Some(false));
    // With the connection all of it is lost: an answer of before has no meaning any more.
    reconciler.lost();
    assert_eq!(reconciler.answered(Ok(reply("new", true)), now), None);
    assert_eq!(reconciler.tally().accepted, 0);
}

#[test]
fn a_file_that_cannot_be_read_leaves_all_as_it_is() {
    let (mut reconciler, now) = reconciler();
    assert_eq!(reconciler.begin("old", Err("gone".to_owned()), now), None);
    assert_eq!(reconciler.tally().problem.as_deref(), Some("gone"));
    assert_eq!(reconciler.again_at(), Some(now + TRY_AGAIN));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.toml");
    let read = |path: &Path| ProfileFile::read(path).unwrap_err();
    assert!(read(&path).contains("No such file"), "{}", read(&path));
    assert!(read(folder.path()).contains("it is no file"));
    std::fs::write(&path, vec![b'#'; MAX_LINE]).unwrap();
    assert!(read(&path).contains("longer than"));
    std::fs::write(&path, [0xff]).unwrap();
    assert!(read(&path).contains("UTF-8"), "{}", read(&path));
    std::fs::write(&path, "name = \"a\"\n").unwrap();
    assert_eq!(ProfileFile::read(&path).unwrap().text, "name = \"a\"\n");
}
