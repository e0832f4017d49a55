//! Programs: what is loaded, where it is attached, and what its maps hold.

use std::collections::BTreeMap;

use super::{
    Checker,
    targets::{TARGETS, redirects},
    values::Targets,
};
use xdplab_wire::flow;

use crate::{
    topology::{
        diagnostic::{Diagnostic, Span},
        model::{
            Builtin, Datum, DevMapKind, FlowMap, Lookup, Options, PortId, Program, ProgramBody, ProgramId,
            ProgramSource, Touch,
        },
        read::{At, Field, Names, RawValue},
        schema::{DISPATCHER_MOST, ENTRIES_MOST, EXTRA_MOST, QUEUE_MOST, RawBody, RawOptions, RawProgram, TRAITS_MOST},
        spans::ProgramSpans,
        suggest,
    },
    xdp::XdpMode,
};

/// Key lengths that the built-in `flow` has a program for.
const KEY_LENGTHS: [u32; flow::LENGTHS.len()] = {
    let mut lengths = [0; flow::LENGTHS.len()];
    let mut n = 0;
    while n < lengths.len() {
        lengths[n] = flow::LENGTHS[n] as u32;
        n += 1;
    }
    lengths
};

/// The keys that a program and its stand-in have in common.
pub(super) struct BodyKeys<'a> {
    builtin: &'a Field<Builtin>,
    object: &'a Field<String>,
    program: &'a Field<String>,
    pub(super) maps: &'a Field<Names<RawValue>>,
    globals: &'a Field<Names<RawValue>>,
    egress: &'a Field<String>,
    pub(super) options: &'a Field<RawOptions>,
}

macro_rules! body_keys {
    ($($type:ident),*) => {$(
        impl<'a> From<&'a $type> for BodyKeys<'a> {
            fn from(raw: &'a $type) -> Self {
                let $type { builtin, object, program, maps, globals, egress, options, .. } = raw;
                Self { builtin, object, program, maps, globals, egress, options }
            }
        }
    )*};
}

body_keys!(RawProgram, RawBody);

/// A body that stands for one that was reported.
fn placeholder() -> ProgramBody {
    ProgramBody {
        source: ProgramSource::Builtin(Builtin::Pass),
        maps: BTreeMap::new(),
        globals: BTreeMap::new(),
        egress: None,
        options: no_options(),
    }
}

fn no_options() -> Options {
    Options::default()
}

impl<'a> Checker<'a> {
    /// Checks all programs.
    pub(super) fn check_programs(&mut self) {
        let mut attached: BTreeMap<PortId, (&'a str, Span)> = BTreeMap::new();
        let raw = self.raw;
        self.paths_are_whole &= !raw.programs.is_bad();
        for (name, value) in raw.programs.given().map(|names| names.value.entries.as_slice()).unwrap_or_default() {
            self.check_name("program", name);
            let id = ProgramId(self.draft.programs.len());
            self.programs.insert(&name.value, id);
            let Some(At { value: raw, span }) = value.given() else {
                self.sound.push(false);
                self.paths_are_whole = false;
                self.draft.spans.programs.push(ProgramSpans::default());
                self.draft.programs.push(Program {
                    name: name.value.clone(),
                    attach: Vec::new(),
                    mode: None,
                    body: placeholder(),
                });
                continue;
            };
            let attach = self.ports(&raw.attach);
            let named = raw.attach.given().map(|list| list.value.items.len());
            self.paths_are_whole &=
                named == Some(attach.len()) && !raw.attach.given().is_some_and(|list| list.value.bad);
            if raw.attach.given().is_some_and(|list| list.value.items.is_empty() && !list.value.bad) {
                let at = raw.attach.given().map_or_else(|| span.clone(), |list| list.span.clone());
                self.report(
                    Diagnostic::error(at, format!("program `{}` is attached nowhere", name.value))
                        .label("no port")
                        .help("name a port, or leave the program out"),
                );
            }
            for (port, span) in &attach {
                if let Some((other, first)) = attached.get(port) {
                    let port = self.draft.port_name(*port);
                    let diagnostic = Diagnostic::error(
                        span.clone(),
                        format!("port `{port}` gets two programs, `{other}` and `{}`", name.value),
                    )
                    .label(format!("`{}` here", name.value))
                    .related(first.clone(), format!("`{other}` here"))
                    .help("attach one of them elsewhere: a port runs one XDP program");
                    self.report(diagnostic);
                } else {
                    attached.insert(*port, (&name.value, span.clone()));
                }
            }
            let ports: Vec<_> = attach.iter().map(|(port, _)| *port).collect();
            let found_before = self.found.len();
            let (body, targets) = self.check_body(&raw.into(), &name.value, span, &ports);
            self.sound.push(body.is_some() && self.found.len() == found_before && !raw.maps.is_bad());
            let body = body.unwrap_or_else(placeholder);
            let mode = raw.mode.given().map(|mode| mode.value);
            if mode != Some(XdpMode::Generic) && !raw.mode.is_bad() {
                let is_object = body.builtin().is_none();
                for (port, span) in &attach {
                    self.check_native(*port, span, &name.value, is_object);
                }
            }
            self.draft.spans.programs.push(ProgramSpans {
                name: name.span.clone(),
                object: raw.object.given().map(|object| object.span.clone()),
                attach: attach.iter().map(|(_, span)| span.clone()).collect(),
                targets,
            });
            self.draft.programs.push(Program { name: name.value.clone(), attach: ports, mode, body });
        }
    }

    /// Checks what is loaded: for a program, or in its place. `None` where it was reported.
    pub(super) fn check_body(
        &mut self,
        keys: &BodyKeys<'a>,
        name: &str,
        span: &Span,
        attach: &[PortId],
    ) -> (Option<ProgramBody>, Targets) {
        let source = self.check_source(keys, name, span);
        let builtin = match &source {
            Some(ProgramSource::Builtin(builtin)) => Some(*builtin),
            _ => None,
        };
        let mut targets = Targets::new();
        let mut maps = BTreeMap::new();
        for (map, value) in keys.maps.given().map(|names| names.value.entries.as_slice()).unwrap_or_default() {
            if let Some(builtin) = builtin
                && (!redirects(builtin) || map.value != TARGETS)
            {
                let builtin_word = builtin.name();
                let help = if redirects(builtin) {
                    suggest::did_you_mean(&map.value, "its map is", [TARGETS])
                } else {
                    Some("leave it out; redirect_map, broadcast, flow and traits have `tx_ports`".to_owned())
                };
                self.report(
                    Diagnostic::error(
                        map.span.clone(),
                        format!("the built-in `{builtin_word}` has no map `{}`", map.value),
                    )
                    .label("no such map")
                    .maybe_help(help),
                );
                continue;
            }
            let Some(value) = value.given() else { continue };
            if let Some(contents) = self.map_contents(value, &mut targets) {
                maps.insert(map.value.clone(), contents);
            }
        }
        let globals = self.check_globals(keys, builtin, &mut targets);
        for (target, at) in &targets {
            self.check_same_node(*target, at, name, attach);
        }
        let options = self.check_options(keys, builtin);
        if builtin == Some(Builtin::Xsk) {
            let at = keys.options.given().and_then(|options| Some(options.value.queues.given()?.span.clone()));
            self.check_xsk_ports(&options.xsk, &at.unwrap_or_else(|| span.clone()), attach);
        }
        let egress = self.check_egress(keys, builtin);
        if let Some(builtin) = builtin.filter(|builtin| redirects(*builtin)) {
            self.check_targets(keys, builtin, span, &targets, options.max_entries);
        }
        (source.map(|source| ProgramBody { source, maps, globals, egress, options }), targets)
    }

    fn check_source(&mut self, keys: &BodyKeys<'a>, name: &str, span: &Span) -> Option<ProgramSource> {
        let bad = keys.builtin.is_bad() || keys.object.is_bad();
        match (keys.builtin.given(), keys.object.given()) {
            (Some(builtin), Some(object)) => {
                self.report(
                    Diagnostic::error(object.span.clone(), format!("`{name}` is both a built-in and an object"))
                        .label("an object here")
                        .related(builtin.span.clone(), "a built-in here")
                        .help("keep one of the two"),
                );
                None
            }
            (None, None) => {
                if !bad {
                    self.report_fit(
                        Diagnostic::error(span.clone(), format!("nothing says what `{name}` loads"))
                            .label("neither `builtin` nor `object`")
                            .help("add builtin = \"drop\", or object = \"my.bpf.o\""),
                    );
                }
                None
            }
            (Some(builtin), None) => {
                if let Some(program) = keys.program.given() {
                    self.report(
                        Diagnostic::error(program.span.clone(), "a built-in has no programs to choose from")
                            .label("only for an object")
                            .help("leave `program` out, or give `object` in place of `builtin`"),
                    );
                }
                (!bad).then_some(ProgramSource::Builtin(builtin.value))
            }
            (None, Some(object)) => {
                let empty = [Some(object), keys.program.given()]
                    .into_iter()
                    .flatten()
                    .find(|text| text.value.is_empty() || text.value.contains('\0'));
                if let Some(empty) = empty {
                    self.report(
                        Diagnostic::error(empty.span.clone(), format!("`{name}` names no file or no program"))
                            .label("nothing here")
                            .help("name the object's file, relative to this one, and a program in it"),
                    );
                    return None;
                }
                let folder = self.draft.path.parent().unwrap_or_else(|| "".as_ref());
                let path = folder.join(&object.value);
                (!bad).then(|| ProgramSource::Object {
                    path,
                    program: keys.program.given().map(|program| program.value.clone()),
                })
            }
        }
    }

    fn check_globals(
        &mut self,
        keys: &BodyKeys<'a>,
        builtin: Option<Builtin>,
        targets: &mut Targets,
    ) -> BTreeMap<String, Datum> {
        let mut globals = BTreeMap::new();
        let Some(names) = keys.globals.given() else { return globals };
        if let Some(builtin) = builtin {
            self.report(
                Diagnostic::error(
                    names.span.clone(),
                    format!("the built-in `{}` has no globals to set", builtin.name()),
                )
                .label("only for an object")
                .help("use `options`"),
            );
            return globals;
        }
        for (global, value) in &names.value.entries {
            let Some(value) = value.given() else { continue };
            if let Some(datum) = self.datum(value, targets) {
                globals.insert(global.value.clone(), datum);
            }
        }
        globals
    }

    fn check_options(&mut self, keys: &BodyKeys<'a>, builtin: Option<Builtin>) -> Options {
        let Some(raw) = keys.options.given() else { return no_options() };
        if keys.object.given().is_some() && keys.builtin.is_absent() {
            self.report(
                Diagnostic::error(raw.span.clone(), "options are for the built-ins")
                    .label("this is an object")
                    .help("use `globals` to set an object's data"),
            );
            return no_options();
        }
        let raw = &raw.value;
        let given = [
            ("touch", raw.touch.given().map(|at| at.span.clone()), &[Builtin::Drop, Builtin::Pass, Builtin::Tx][..]),
            ("map", raw.map.given().map(|at| at.span.clone()), &[Builtin::RedirectMap, Builtin::Broadcast]),
            (
                "max-entries",
                raw.max_entries.given().map(|at| at.span.clone()),
                &[Builtin::RedirectMap, Builtin::Broadcast],
            ),
            ("exclude-ingress", raw.exclude_ingress.given().map(|at| at.span.clone()), &[Builtin::Broadcast]),
            (
                "extra",
                raw.extra.given().map(|at| at.span.clone()),
                &[Builtin::Drop, Builtin::Pass, Builtin::Tx, Builtin::RedirectMap],
            ),
            ("single-target", raw.single_target.given().map(|at| at.span.clone()), &[Builtin::Broadcast]),
            ("entries", raw.entries.given().map(|at| at.span.clone()), &[Builtin::Dispatcher]),
            ("lookup", raw.lookup.given().map(|at| at.span.clone()), &[Builtin::Flow]),
            ("key-bytes", raw.key_bytes.given().map(|at| at.span.clone()), &[Builtin::Flow]),
            ("miss", raw.miss.given().map(|at| at.span.clone()), &[Builtin::Flow]),
            ("cpu", raw.cpu.given().map(|at| at.span.clone()), &[Builtin::Cpumap]),
            ("queue", raw.queue.given().map(|at| at.span.clone()), &[Builtin::Cpumap]),
            ("traits", raw.traits.given().map(|at| at.span.clone()), &[Builtin::Traits]),
            ("trait-bytes", raw.trait_bytes.given().map(|at| at.span.clone()), &[Builtin::Traits]),
            ("ring", raw.ring.given().map(|at| at.span.clone()), &[Builtin::Xsk]),
            ("queues", raw.queues.given().map(|at| at.span.clone()), &[Builtin::Xsk]),
            ("fallback", raw.fallback.given().map(|at| at.span.clone()), &[Builtin::Xsk]),
        ];
        for (key, span, of) in given {
            let (Some(span), Some(builtin)) = (span, builtin) else { continue };
            if !of.contains(&builtin) {
                let names: Vec<_> = of.iter().map(|builtin| format!("`{}`", builtin.name())).collect();
                self.report(
                    Diagnostic::error(span, format!("`{key}` does nothing for the built-in `{}`", builtin.name()))
                        .label("not an option of this one")
                        .help(format!("leave it out; it is an option of {}", names.join(", "))),
                );
            }
        }
        Options {
            touch: raw.touch.given().map_or(Touch::None, |at| at.value),
            map: raw.map.given().map_or(DevMapKind::Devmap, |at| at.value),
            max_entries: self.in_range(&raw.max_entries, "a map size", 1..=ENTRIES_MOST),
            exclude_ingress: raw.exclude_ingress.given().is_some_and(|at| at.value),
            entries: self.in_range(&raw.entries, "a number of entries", 1..=DISPATCHER_MOST).unwrap_or(1),
            lookup: Lookup {
                map: raw.lookup.given().map_or(FlowMap::Hash, |at| at.value),
                key_bytes: self.one_of(&raw.key_bytes, "a key length", &KEY_LENGTHS).unwrap_or(16),
                miss: raw.miss.given().is_some_and(|at| at.value),
            },
            cpu: self.in_range(&raw.cpu, "a CPU", 0..=i64::from(u16::MAX)),
            queue: self.in_range(&raw.queue, "a queue length", 1..=QUEUE_MOST).unwrap_or(2048),
            extra: self.in_range(&raw.extra, "a number of steps", 0..=EXTRA_MOST).unwrap_or(0),
            traits: (
                self.in_range(&raw.traits, "a number of traits", 1..=TRAITS_MOST).unwrap_or(1),
                self.one_of(&raw.trait_bytes, "a trait's length", &[2, 4, 8]).unwrap_or(4),
            ),
            xsk: self.check_xsk_options(raw),
        }
    }

    /// A number that must be one of a few.
    fn one_of(&mut self, field: &Field<i64>, what: &str, of: &[u32]) -> Option<u32> {
        let at = field.given()?;
        let found = of.iter().copied().find(|number| i64::from(*number) == at.value);
        if found.is_none() {
            let list: Vec<String> = of.iter().map(ToString::to_string).collect();
            self.report(
                Diagnostic::error(at.span.clone(), format!("{} is not {what} that there is", at.value))
                    .label("not one of them")
                    .help(format!("use one of {}", list.join(", "))),
            );
        }
        found
    }

    fn check_egress(&mut self, keys: &BodyKeys<'a>, builtin: Option<Builtin>) -> Option<String> {
        let egress = keys.egress.given()?;
        if let Some(builtin) = builtin {
            let has_egress = matches!(builtin, Builtin::RedirectMap | Builtin::Broadcast | Builtin::Cpumap);
            let wrong = if !has_egress {
                Some((
                    format!(
                        "the built-in `{}` has no devmap or cpumap that a second program could run on",
                        builtin.name()
                    ),
                    "leave it out; redirect_map, broadcast and cpumap have one".to_owned(),
                ))
            } else if !matches!(egress.value.as_str(), "pass" | "drop") {
                Some((
                    format!("unknown egress program `{}`", egress.value),
                    suggest::did_you_mean(&egress.value, "use one of", ["pass", "drop"]).unwrap_or_default(),
                ))
            } else {
                None
            };
            if let Some((message, help)) = wrong {
                self.report(Diagnostic::error(egress.span.clone(), message).label("not here").help(help));
                return None;
            }
        }
        Some(egress.value.clone())
    }
}
