//! `xdplab down`: takes labs away.

use xdplab::lab::persistent;

use crate::{
    cli::{DownArgs, Format},
    failure::{Failure, chain},
    gc, output, signals,
};

/// Takes the labs away; one that fails does not keep the others.
pub(crate) fn down(args: &DownArgs) -> Result<u8, Failure> {
    gc::need_root()?;
    let _delayed = signals::delayed()?;
    let labs = if args.all { persistent::names()? } else { args.labs.clone() };
    let mut gone = Vec::new();
    let mut worst = 0;
    for lab in labs {
        match persistent::down(&lab) {
            Ok(said) => {
                for note in said {
                    eprintln!("note: {lab}: {note}");
                }
                gone.push(lab);
            }
            Err(error) => {
                eprintln!("error: {lab}: {}", chain(&error));
                let code = Failure::from(error).exit_code();
                worst = if worst == 2 { 2 } else { code };
            }
        }
    }
    match args.format {
        Format::Json => output::print_json(&gone)?,
        Format::Text => output::print(&gone.iter().map(|lab| format!("{lab} is down\n")).collect::<String>())?,
    }
    Ok(worst)
}
