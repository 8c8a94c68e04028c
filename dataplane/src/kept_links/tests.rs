use super::*;
use holdfast_xsk::{NetdevMark, NetnsMark, Setting};
use proptest::prelude::*;
use std::io;
use std::process::Command;
use tempfile::TempDir;

/// A netdev that isn't there: nothing happens to anybody's settings.
fn netdev() -> NetdevMark {
    let (path, name) = ("/run/netns/hf-no-such".to_owned(), "hf-no-such".to_owned());
    let netns = NetnsMark { path, name, inode: 1, cookie: 1 };
    let (ifname, mac) = ("eth9".to_owned(), "02:00:00:00:00:01".to_owned());
    NetdevMark { netns, ifindex: 7, ifname, mac }
}

fn originals() -> Vec<Original> {
    let settings = [
        Setting::Mtu(1500),
        Setting::Channels { rx: 0, tx: 1, other: 2, combined: 3 },
        Setting::Offload("rx-gro".to_owned()),
        Setting::Pause { autoneg: true, rx: false, tx: true },
        Setting::AdminDown,
    ];
    settings.map(|was| Original { netdev: netdev(), was }).into()
}

fn kept(folder: &Path, boot_id: &str) -> KeptLinks {
    KeptLinks::new(folder, boot_id).unwrap()
}

fn names(folder: &TempDir) -> Vec<String> {
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let all = fs::read_dir(folder.path()).unwrap().map(name);
    all.map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn what_is_kept_is_read_in_this_boot_alone_and_nothing_stays_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let this = kept(folder.path(), "this");
    assert_eq!(this.read().unwrap(), []);
    this.write(&originals()[..2]).unwrap();
    this.write(&originals()).unwrap();
    assert_eq!(names(&folder), [FILE], "nothing unfinished stays");
    assert_eq!(this.read().unwrap(), originals());
    drop(this);
    let next = kept(folder.path(), "next");
    assert_eq!(next.read().unwrap(), []);
    next.write(&[]).unwrap();
    assert_eq!(names(&folder), [""; 0]);
}

#[test]
fn the_list_for_the_operator_names_each_netdev_once() {
    let mut all = originals();
    let peer = NetdevMark { ifname: "eth8".to_owned(), ..netdev() };
    all.truncate(1);
    all.push(Original { netdev: netdev(), was: Setting::AdminDown });
    all.push(Original { netdev: peer, was: Setting::Offload("tx-checksum-ipv4".to_owned()) });
    let text = "hf-no-such/eth9: mtu 1500, link down; hf-no-such/eth8: tx-checksum-ipv4 on";
    assert_eq!(list(&all), text);
}

/// A start with it goes on, keeps the broken file for the operator, and removes its own.
#[test]
fn a_broken_file_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE), b"{\"about\": \"\xff").unwrap();
    let (kept, left) = open(folder.path()).unwrap();
    assert_eq!(left, []);
    assert_eq!(names(&folder), [BROKEN]);
    kept.write(&originals()).unwrap();
    assert_eq!(kept.read().unwrap(), originals());
}

#[test]
fn what_belongs_to_netdevs_that_are_gone_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let boot_id = fs::read_to_string(BOOT_ID).unwrap();
    kept(folder.path(), boot_id.trim()).write(&originals()).unwrap();
    let log = put_back_left(folder.path());
    assert_eq!(names(&folder), [""; 0]);
    drop(log);
}

/// Two switches that share a folder by mistake: the second one must not put back what the first
/// one has changed and still needs.
#[test]
fn the_folder_of_a_running_switch_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let first = kept(folder.path(), "this");
    first.write(&originals()).unwrap();
    assert!(matches!(open(folder.path()), Err(LinksError::InUse(_))));
    assert_eq!(first.read().unwrap(), originals());
    drop(first);
    assert!(open(folder.path()).is_ok());
}

/// A tmpfs of four pages, full: what was kept before is still there, and what is kept is removed.
#[test]
fn a_full_disk_is_a_warning_and_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let test = std::env::current_exe().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=16k none {folder} || exit 9\n\
         HOLDFAST_FULL_DISK={folder} exec {test} --exact --ignored --nocapture \
         kept_links::tests::on_a_full_disk",
        folder = folder.path().display(),
        test = test.display()
    );
    let run = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "run by the test above, in a mount namespace of its own"]
fn on_a_full_disk() {
    let Some(folder) = std::env::var_os("HOLDFAST_FULL_DISK").map(PathBuf::from) else { return };
    let mut kept = kept(&folder, "this");
    kept.keep(&originals());
    assert!(!kept.warned);
    let mut ballast = File::create(folder.join("ballast")).unwrap();
    while io::Write::write(&mut ballast, &[0; 4096]).is_ok() {}
    let many: Vec<_> = originals().into_iter().cycle().take(50).collect();
    let error = kept.write(&many).unwrap_err();
    assert_eq!(error.source.kind(), io::ErrorKind::StorageFull, "{error}");
    kept.keep(&many);
    assert!(kept.warned);
    assert_eq!(kept.read().unwrap(), originals());
    kept.keep(&[]);
    assert!(!folder.join(FILE).exists());
}

proptest! {
    /// Whatever byte is changed and wherever the file is cut: nothing else is ever put back.
    #[test]
    fn damage_is_found_out(at in 0usize..4000, byte in any::<u8>(), cut in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path(), "this");
        kept.write(&originals()).unwrap();
        let path = folder.path().join(FILE);
        let mut bytes = fs::read(&path).unwrap();
        let at = at % bytes.len();
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] = byte;
        }
        fs::write(&path, bytes).unwrap();
        match kept.read() {
            // White space and the sentence for people don't count.
            Ok(read) => prop_assert_eq!(read, originals()),
            Err(LinksError::Broken { path: named, .. }) => prop_assert_eq!(named, path),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
