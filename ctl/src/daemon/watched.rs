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
        match mapped {
            Ok(segment) => (self.segment, self.trouble) = (Some(segment), None),
            Err(trouble) => (self.segment, self.trouble) = (None, Some(trouble)),
        }
        self.trouble()
    }

    /// Why there are no counters of a switch that is there.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The profile that is in force at this moment, where the counters can be read.
    pub(crate) fn profile(&self) -> Option<ProfileEntry> {
        self.segment.as_ref()?.directory().ok().map(|names| names.profile)
    }

    /// The answer to `GET /metrics`; `up`: the switch is there.
    pub(crate) fn page(&self, up: bool) -> Response {
        let failed = |message: String| {
            let body = ErrorBody::new(ErrorCode::Unavailable, message).at("segment");
            let fix = "install the same release of holdfastd and holdfast-dataplane";
            Response::with_status(Status::BadGateway, &body.fix(fix))
        };
        if let Some(trouble) = self.trouble().filter(|_| up) {
            return failed(trouble.to_owned());
        }
        match metrics::page(self.segment.as_ref(), up, now_ns()) {
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
