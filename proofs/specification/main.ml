(* Runs the extracted Max. Each line of stdin is a case: `int` or `float W T`, then `rank sizes... items...` for each
   input of Max. *)
module F = Execute__CMaxFloat
module I = Execute__CMaxInt

let numbers line = List.filter (( <> ) "") (String.split_on_char ' ' line)

(* Splits a list after its first n elements. *)
let rec take n list =
  if n = 0 then ([], list)
  else match list with
    | [] -> failwith "a case ends early"
    | x :: more -> let some, others = take (n - 1) more in (x :: some, others)

let rec inputs = function
  | [] -> []
  | rank :: words ->
    let sizes, words = take (int_of_string rank) words in
    let items, words = take (List.fold_left ( * ) 1 (List.map int_of_string sizes)) words in
    (List.map Z.of_string sizes, Array.of_list (List.map Z.of_string items)) :: inputs words

let show shape items = String.concat " " (List.map Z.to_string ((Z.of_int (List.length shape) :: shape) @ items))

let answer line = match numbers line with
  | "int" :: words ->
    (match I.cmax (List.map (fun (shape, items) -> { I.shape; items }) (inputs words)) with
     | y -> show y.I.shape (Array.to_list y.I.items)
     | exception I.NotBroadcastable -> "refused")
  | "float" :: w :: t :: words ->
    let w = Z.of_string w and t = Z.of_string t in
    let tensor (shape, items) = { F.shape; items = Array.map (fun bits -> { F.w; t; bits }) items } in
    (match F.cmax (List.map tensor (inputs words)) with
     | y -> show y.F.shape (List.map (fun x -> x.F.bits) (Array.to_list y.F.items))
     | exception F.NotBroadcastable -> "refused")
  | _ -> failwith "neither int nor float"

let () = try while true do print_endline (answer (input_line stdin)) done with End_of_file -> ()
