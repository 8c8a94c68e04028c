//! P04: both ends of a link must pause the same priorities and sort frames alike.

use super::{Id, LintFinding, PortView, Report};
use crate::resolve::{assemble, ProfilePlan};
use crate::{PlanError, SwitchFacts};
use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::ProfileDoc;
use holdfast_core::ids::{Cos, Priority};
use holdfast_core::profile::{PortSpec, Trust};

/// One end of a link: a profile and the ports it is planned for.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The profile.
    pub doc: &'a ProfileDoc,
    /// Its switch.
    pub facts: &'a SwitchFacts,
    /// The port at this end of the link; `None` compares all: for profiles whose ports are alike.
    pub port: Option<&'a str>,
}

/// Compares `own` with `peer`, the other end of its link. Nothing is found where `own` can't be
/// planned: [`super::profile`] says why.
///
/// # Errors
/// [`PlanError`] for a port that isn't there, and for a peer that can't be planned.
pub fn link(own: End<'_>, peer: End<'_>) -> Result<Report, PlanError> {
    let plan =
        |end: End<'_>| assemble(end.doc, end.facts).map_err(|errors| errors.into_iter().next());
    let (Ok(mine), its) = (plan(own), plan(peer)) else { return Ok(Report::default()) };
    let its = match its {
        Ok(its) => its,
        Err(error) => return error.map_or_else(|| Ok(Report::default()), Err),
    };
    let (mine, its) = (ports(&mine, own.port)?, ports(&its, peer.port)?);
    let mut found = Vec::new();
    for port in &mine {
        // What several ports of the peer do alike is said once.
        let mut said: Vec<(Finding, &str)> = Vec::new();
        for other in &its {
            for finding in differences(port, other) {
                if !said.iter().any(|(earlier, _)| *earlier == finding) {
                    said.push((finding, other.name));
                }
            }
        }
        found.extend(said.into_iter().map(|(mut finding, other)| {
            finding.message = format!("{} (peer's port {other})", finding.message);
            LintFinding::gravest(Id::P04, finding).at(port)
        }));
    }
    Ok(Report::new(found))
}

fn ports<'a>(plan: &'a ProfilePlan, name: Option<&str>) -> Result<Vec<PortView<'a>>, PlanError> {
    let all = plan.port_names().iter().zip(&plan.spec().ports).enumerate();
    let views = all.map(|(number, (name, spec))| PortView { number, name, spec });
    let chosen: Vec<PortView<'a>> =
        views.filter(|port| name.is_none_or(|name| port.name == name)).collect();
    match (name, chosen.is_empty()) {
        (Some(name), true) => {
            let known = plan.port_names().to_vec();
            Err(PlanError::UnknownPort { name: name.to_owned(), known })
        }
        _ => Ok(chosen),
    }
}

fn differences(port: &PortView<'_>, other: &PortView<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let (mine, its) = (port.spec, other.spec);
    let numbers = |spec: &PortSpec| {
        let enabled: Vec<u8> = spec.pfc.enabled.iter().map(Priority::number).collect();
        format!("{enabled:?}")
    };
    if mine.pfc.enabled != its.pfc.enabled {
        let message = "the two ends of the link enable PFC on different priorities";
        let fix = "enable the same priorities at both ends";
        let finding = Finding::new(port.key("pfc.enabled"), message, fix);
        found.push(finding.numbers(numbers(mine), numbers(its)));
    }
    if mine.maps.trust != its.maps.trust {
        let name = |trust| match trust {
            Trust::Dscp => "dscp",
            Trust::Pcp => "pcp",
            Trust::Port => "port",
        };
        let message = "the two ends of the link believe different fields of a frame";
        let finding = Finding::new(port.key("maps.trust"), message, "trust the same at both ends");
        found.push(finding.numbers(name(mine.maps.trust), name(its.maps.trust)));
        return found;
    }
    let dscp = mine.maps.dscp_to_cos.iter().map(|(dscp, cos)| (dscp.number(), *cos));
    let pcp = mine.maps.pcp_to_cos.iter().map(|(pcp, cos)| (pcp.number(), *cos));
    if mine.maps.trust == Trust::Dscp {
        found.extend(map(port, "dscp_to_cos", "DSCP", dscp, &its.maps.dscp_to_cos.0));
    }
    if mine.maps.trust != Trust::Port {
        found.extend(map(port, "pcp_to_cos", "PCP", pcp, &its.maps.pcp_to_cos.0));
    }
    found
}

/// The codes that the two ends sort into different classes.
fn map(
    port: &PortView<'_>,
    key: &str,
    field: &str,
    mine: impl Iterator<Item = (u8, Cos)>,
    its: &[Cos],
) -> Option<Finding> {
    let both = mine.zip(its).filter(|((_, mine), its)| mine != *its);
    let differing: Vec<(u8, Cos, Cos)> = both.map(|((n, mine), its)| (n, mine, *its)).collect();
    let (_, first, its_first) = differing.first()?;
    let codes: Vec<String> = differing.iter().map(|(code, ..)| code.to_string()).collect();
    let message = format!("the two ends of the link sort {field} {} differently", codes.join(", "));
    let fix = format!("use the same {key} at both ends");
    let finding = Finding::new(port.key(format_args!("maps.{key}")), message, fix);
    Some(finding.numbers(format!("CoS {first}"), format!("CoS {its_first}")))
}
