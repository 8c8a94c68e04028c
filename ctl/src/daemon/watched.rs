//! The counters of the switch that was there last, and the page made of them.

use crate::http::{Response, Status};
use crate::metrics::{self, MEDIA_TYPE};
use holdfast_api::message::{ErrorBody, ErrorCode};
use holdfast_shm::directory::ProfileEntry;
use holdfast_shm::SegmentReader;
use nix::time::{clock_gettime, ClockId};
use std::os::fd::OwnedFd;

/// What is known of the counters segment.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    segment: Option<SegmentReader>,
    /// The switch whose it is has gone: one that is there now has not handed over its own yet.
    gone: bool,
    /// Why the segment of the switch that is there can't be read.
    trouble: Option<String>,
}

impl Watched {
    /// The switch handed over its segment, or said why it doesn't. The text is for the log.
    pub(crate) fn handed(
        &mut self,
        outcome: Result<(), ErrorBody>,
        file: Option<OwnedFd>,
    ) -> Option<&str> {
        let told = outcome.map_err(|error| error.to_string());
        let file = told.and_then(|()| {
            file.ok_or_else(|| "the switch sent no file with its counters segment".to_owned())
        });
        let mapped = file.and_then(|file| SegmentReader::new(file).map_err(|e| e.to_string()));
        self.gone = false;
        match mapped {
            Ok(segment) => (self.segment, self.trouble) = (Some(segment), None),
            Err(trouble) => (self.segment, self.trouble) = (None, Some(trouble)),
        }
        self.trouble()
    }

    /// The connection to the switch is lost: the next switch may be another one.
    pub(crate) fn lost(&mut self) {
        self.gone = true;
    }

    /// Why there are no counters of a switch that is there.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The profile that is in force at this moment, where the counters can be read.
    pub(crate) fn profile(&self) -> Option<ProfileEntry> {
        self.segment.as_ref().filter(|_| !self.gone)?.directory().ok().map(|names| names.profile)
    }

    /// The answer to `GET /metrics`; `up`: the switch is there.
    pub(crate) fn page(&self, up: bool) -> Response {
        let failed = |message: String| {
            let body = ErrorBody::new(ErrorCode::Unavailable, message).at("segment");
            let fix = "install the same release of holdfastd and holdfast-dataplane";
            Response::with_status(Status::BadGateway, &body.fix(fix))
        };
        if let Some(trouble) = self.trouble().filter(|_| up && !self.gone) {
            return failed(trouble.to_owned());
        }
        match metrics::page(self.segment.as_ref(), up && !self.gone, now_ns()) {
            Ok(text) => Response::page(MEDIA_TYPE, text),
            Err(error) => failed(error.to_string()),
        }
    }
}

/// `CLOCK_MONOTONIC`, by which the switch says when a counter was written.
fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |at| {
        (at.tv_sec() as u64).saturating_mul(1_000_000_000).saturating_add(at.tv_nsec() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_shm::layout::Layout;
    use holdfast_shm::{Identity, Segment};

    fn is_up(watched: &Watched) -> bool {
        let page = watched.page(true);
        assert_eq!(page.status, Status::Ok);
        String::from_utf8(page.body).unwrap().contains("\nholdfast_up 1\n")
    }

    /// A switch that has just come back is not shown with the numbers of the one before.
    #[test]
    fn a_new_switch_is_up_when_its_own_counters_are_there() {
        let hand_over = |watched: &mut Watched| {
            let segment = Segment::new(Layout::new(1).unwrap(), &Identity::default()).unwrap();
            let file = segment.file().try_clone_to_owned().unwrap();
            assert_eq!(watched.handed(Ok(()), Some(file)), None);
        };
        let mut watched = Watched::default();
        assert!(!is_up(&watched));
        hand_over(&mut watched);
        assert!(is_up(&watched) && watched.profile().is_some());
        watched.lost();
        assert!(!is_up(&watched) && watched.profile().is_none());
        hand_over(&mut watched);
        assert!(is_up(&watched));
        // One that sends no file is no less there, and says why it can't be read.
        assert!(watched.handed(Ok(()), None).is_some());
        assert_eq!(watched.page(true).status, Status::BadGateway);
    }
}
